"""Random numbers that depend on (seed, counter, index) alone: a counter-based generator.

No state, so neither batching nor preemption nor the order of calls changes a draw. The word of
(seed, counter, index) is m(m(m(seed) + counter·C) + index·G) over 64-bit integers that wrap, with
m the finaliser of SplitMix64 (Steele, Lea, Flood 2014), G the golden-ratio increment and C another
odd constant; a uniform is its top 53 bits / 2⁵³. `counter` is the position of the token drawn in
its whole sequence, `index` the vocabulary id. The scalar and the vector form agree bit for bit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_COUNTER = 0xD1B54A32D192ED03
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_UNIT = 2.0**-53


def uniform(seed: int, counter: int, index: int = 0) -> float:
    """A float in [0, 1). Any integers; each is taken modulo 2⁶⁴."""
    return (_mix(_key(seed, counter) + index * _GOLDEN) >> 11) * _UNIT


def uniforms(seed: int, counter: int, size: int) -> NDArray[np.float64]:
    """`uniform(seed, counter, i)` for i in 0 … size−1, as float64 [size] in [0, 1)."""
    with np.errstate(over="ignore"):
        words = np.arange(size, dtype=np.uint64) * np.uint64(_GOLDEN)
        words += np.uint64(_key(seed, counter))
        words = (words ^ (words >> np.uint64(30))) * np.uint64(_MIX_1)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(_MIX_2)
        words ^= words >> np.uint64(31)
    unit: NDArray[Any] = (words >> np.uint64(11)).astype(np.float64) * _UNIT
    return unit


def gumbel(seed: int, counter: int, size: int) -> NDArray[np.float64]:
    """Standard Gumbel noise, float64 [size]: argmax(logits / T + noise) draws from softmax.

    Finite always: the uniform is moved by half a step into (0, 1).
    """
    inside = np.minimum(uniforms(seed, counter, size) + _UNIT / 2, 1.0 - _UNIT)
    return -np.log(-np.log(inside))


def derive_seed(*parts: int | str) -> int:
    """One 64-bit seed from several integers or texts, order mattering (FNV-1a folded and mixed)."""
    state = 0xCBF29CE484222325
    for part in parts:
        word = f"{type(part).__name__}:{part}".encode()
        for byte in word:
            state = ((state ^ byte) * 0x100000001B3) & _MASK
        state = _mix(state + _GOLDEN)
    return state


def _key(seed: int, counter: int) -> int:
    return _mix(_mix(seed) + counter * _COUNTER)


def _mix(word: int) -> int:
    word &= _MASK
    word = ((word ^ (word >> 30)) * _MIX_1) & _MASK
    word = ((word ^ (word >> 27)) * _MIX_2) & _MASK
    return word ^ (word >> 31)
