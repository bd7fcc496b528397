"""The counter-based generator: no state, one formula, uniform."""

import numpy as np

from engine.rng import derive_seed, gumbel, uniform, uniforms


def test_scalar_and_vector_agree_bit_for_bit() -> None:
    for seed, counter in [(0, 0), (1, 0), (2**63 + 5, 7), (-1, 1000), (2**80, -3)]:
        row = uniforms(seed, counter, 97)
        assert row.tolist() == [uniform(seed, counter, i) for i in range(97)]
        assert uniforms(seed, counter, 10).tolist() == row[:10].tolist()


def test_first_words_are_fixed_for_ever() -> None:
    assert uniform(0, 0) == uniforms(0, 0, 1)[0]
    assert [uniform(1, 2, i).hex() for i in range(2)] == [
        "0x1.288e9dd7eb5a0p-3",
        "0x1.133bdb75e1dddp-1",
    ]


def test_values_look_uniform_along_each_argument() -> None:
    n = 20_000
    columns = {
        "index": uniforms(11, 3, n),
        "counter": np.array([uniform(11, i) for i in range(n)]),
        "seed": np.array([uniform(i, 3) for i in range(n)]),
    }
    for name, values in columns.items():
        counts, _ = np.histogram(values, bins=50, range=(0.0, 1.0))
        chi2 = float((((counts - n / 50) ** 2) / (n / 50)).sum())
        assert 20 < chi2 < 95, (name, chi2)  # 49 degrees of freedom: p between 1e-4 and 1 − 1e-4
        lag = float(np.corrcoef(values[:-1], values[1:])[0, 1])
        assert abs(lag) < 0.03, (name, lag)


def test_neighbouring_seeds_and_counters_do_not_correlate() -> None:
    rows = [uniforms(s, c, 5_000) for s in range(3) for c in range(3)]
    for i, a in enumerate(rows):
        for b in rows[:i]:
            assert abs(float(np.corrcoef(a, b)[0, 1])) < 0.06


def test_gumbel_argmax_draws_from_softmax() -> None:
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    logits = np.log(probabilities)
    n = 20_000
    draws = [int(np.argmax(logits + gumbel(5, position, 4))) for position in range(n)]
    seen = np.bincount(draws, minlength=4) / n
    assert np.abs(seen - probabilities).max() < 0.015
    assert np.isfinite(gumbel(0, 0, 100_000)).all()


def test_derived_seeds_tell_their_parts_apart() -> None:
    cases: list[tuple[int | str, ...]] = [(1, 23), (12, 3), ("1", 23), (23, 1), (1, 23, 0)]
    seeds = [derive_seed(*parts) for parts in cases]
    assert len(set(seeds)) == len(seeds)
    assert derive_seed(1, "white", 3) == derive_seed(1, "white", 3)
