"""Bradley–Terry with Davidson's draws and a first-move term, fitted by Newton for many weightings.

With strengths θ, first-move advantage η and draw term λ, all in nats, a game of i (moving first)
against j has log-odds that are linear in the parameters:

    d = θ_i − θ_j + η        win : draw : loss  =  e^{d/2} : e^λ : e^{−d/2}

so the log-likelihood is concave; with a normal prior on every parameter its maximum is unique,
finite and found by Newton's method. Without draws it is plain Bradley–Terry. One call fits B
weightings of the same meetings at once (the replicates of a bootstrap); B = 1 is the estimate.
Knows numbers only: no players, no games, no ratings scale.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
MAX_STEPS = 200
TOLERANCE = 1e-9  # nats, of the largest step
MAX_STEP = 2.0  # nats; far from the maximum Newton's own step is too long
CHUNK = 2_000_000  # numbers in the Hessians of one chunk of replicates


@dataclass(frozen=True, slots=True)
class Model:
    """The shape of a fit: E ordered meetings between n players, and the prior.

    Parameters are θ_0 … θ_{n−1}, η, λ in this order (n + 2). `fixed` parameters keep their
    `start`; `precision` is 1/σ² of the normal prior (0: flat).
    """

    first: NDArray[np.intp]  # [E], player who moves first
    second: NDArray[np.intp]  # [E]
    players: int
    precision: Array  # [n + 2]
    fixed: NDArray[np.bool_]  # [n + 2]
    start: Array  # [n + 2]
    draws: bool  # whether a draw is an outcome at all

    def design(self) -> sparse.csr_array:
        """[E, n + 1]: d = design · (θ, η)."""
        rows = np.arange(len(self.first))
        ones = np.ones(len(rows))
        data = np.concatenate([ones, -ones, ones])
        columns = np.concatenate([self.first, self.second, np.full(len(rows), self.players)])
        shape = (len(rows), self.players + 1)
        return sparse.csr_array((data, (np.tile(rows, 3), columns)), shape=shape)


@dataclass(frozen=True, slots=True)
class Counts:
    """Weighted outcomes, seen by the first mover. Each [B, E]."""

    wins: Array
    draws: Array
    losses: Array

    def part(self, rows: slice) -> "Counts":
        return Counts(self.wins[rows], self.draws[rows], self.losses[rows])


def probabilities(
    difference: Array, draw: Array | float, draws: bool
) -> tuple[Array, Array, Array]:
    """(win, draw, loss) for log-odds d and draw term λ."""
    half = np.clip(difference, -80.0, 80.0) / 2
    win, loss = np.exp(half), np.exp(-half)
    tie = np.exp(draw) + 0 * half if draws else 0 * half
    total = win + tie + loss
    return win / total, tie / total, loss / total


def solve(model: Model, counts: Counts, centre: Array, tolerance: float = TOLERANCE) -> Array:
    """The posterior mode of every weighting, [B, n + 2]; `centre` [B, n + 2]: the prior's mean."""
    step = max(1, CHUNK // (model.players + 2) ** 2)
    parts = [slice(begin, begin + step) for begin in range(0, len(counts.wins), step)]
    found = [_solve(model, counts.part(rows), centre[rows], tolerance) for rows in parts]
    return np.concatenate(found)


def _solve(model: Model, counts: Counts, centre: Array, tolerance: float) -> Array:
    design = model.design()
    products = _products(design)
    at = np.tile(model.start, (len(counts.wins), 1))
    for _ in range(MAX_STEPS):
        gradient, hessian = _derivatives(model, counts, at, design, products)
        gradient -= np.where(model.fixed, 0.0, model.precision * (at - centre))
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        largest = np.abs(step).max(axis=1, keepdims=True)
        at = at + step * np.minimum(1.0, MAX_STEP / np.maximum(largest, MAX_STEP))
        if largest.max() < tolerance:
            return np.asarray(at)
    raise ArithmeticError("the fit does not converge")  # concave and bounded: a bug of ours


def _products(design: sparse.csr_array) -> sparse.csr_array:
    """[E, (n + 1)²]: row e holds the outer product of row e of the design with itself."""
    entries, columns = design.data.reshape(-1, 3), design.indices.reshape(-1, 3)
    data = (entries[:, :, None] * entries[:, None, :]).reshape(-1)
    size = design.shape[1]
    flat = (columns[:, :, None].astype(np.int64) * size + columns[:, None, :]).reshape(-1)
    rows = np.repeat(np.arange(len(entries)), 9)
    return sparse.csr_array((data, (rows, flat)), shape=(len(entries), size * size))


def _derivatives(
    model: Model, counts: Counts, at: Array, design: sparse.csr_array, products: sparse.csr_array
) -> tuple[Array, Array]:
    """The likelihood's gradient [B, n + 2], and minus the posterior's Hessian [B, n + 2, n + 2]."""
    batch, inner = len(at), model.players + 1
    difference = (design @ at[:, :inner].T).T
    win, draw, loss = probabilities(difference, at[:, inner:], model.draws)
    games = counts.wins + counts.draws + counts.losses
    lean = win - loss
    gradient = np.zeros_like(at)
    gradient[:, :inner] = (((counts.wins - counts.losses) - games * lean) / 2) @ design
    gradient[:, inner] = (counts.draws - games * draw).sum(axis=1)

    hessian = np.zeros((batch, inner + 1, inner + 1))
    bend = games * (win + loss - lean**2) / 4
    hessian[:, :inner, :inner] = (bend @ products).reshape(batch, inner, inner)
    cross = (-games * lean * draw / 2) @ design
    hessian[:, :inner, inner] = hessian[:, inner, :inner] = cross
    hessian[:, inner, inner] = (games * draw * (1 - draw)).sum(axis=1)
    diagonal = np.arange(inner + 1)
    hessian[:, diagonal, diagonal] += model.precision

    gradient[:, model.fixed] = 0.0
    hessian[:, model.fixed, :] = 0.0
    hessian[:, :, model.fixed] = 0.0
    hessian[:, model.fixed, model.fixed] = 1.0
    return gradient, hessian
