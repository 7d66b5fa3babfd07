"""Kernels that find nearest cluster centres, or initial centres for k-means.

TF: tensorflow/core/kernels/clustering_ops.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.philox import Philox
from runtime.kernels.random.random_distributions import uniform

_SEED_BITS = (1 << 64) - 1
_MAX_BLOCK_ELEMENTS = 1 << 22  # elements in one block of the matrix of distances


def _check_matrix(name: str, value: np.ndarray) -> None:
    if np.ndim(value) != 2:
        raise InvalidArgumentError(f"{name} must be a matrix.")


def _check_scalar(name: str, value: np.ndarray) -> int:
    if np.ndim(value):
        raise InvalidArgumentError(f"{name} must be a scalar.")
    return int(value)


def nearest_neighbors(
    points: np.ndarray, centers: np.ndarray, k: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """NearestNeighbors: return the `k` nearest centres of each point.

    Returns (indices of the centres, squared distances), each `[points, min(k, centers)]`. The
    nearest centre comes first.
    """
    _check_matrix("points", points)
    _check_matrix("centers", centers)
    count = _check_scalar("k", k)
    if count < 0:
        raise InvalidArgumentError("k must not be negative.")
    if not len(points):
        raise InvalidArgumentError("Expected points.rows() > 0.")
    if points.shape[1] != centers.shape[1]:
        raise InvalidArgumentError("Expected points.dim_size(1) == centers.dim_size(1).")
    count = min(count, len(centers))
    check_allocation((len(points), count), np.int64)
    places = np.empty((len(points), count), np.int64)
    distances = np.empty((len(points), count), np.float32)
    squares = 0.5 * np.square(centers).sum(axis=1)
    rows = max(1, _MAX_BLOCK_ELEMENTS // max(1, len(centers)))
    for start in range(0, len(points), rows):
        block = points[start : start + rows]
        halves = squares - block @ centers.T  # squared distances / 2 − |point|² / 2
        order = np.argsort(halves, axis=1, kind="stable")[:, :count]
        own = np.square(block).sum(axis=1, keepdims=True)
        places[start : start + rows] = order
        distances[start : start + rows] = own + 2 * np.take_along_axis(halves, order, axis=1)
    return places, distances


def kmc2_chain_initialization(distances: np.ndarray, seed: np.ndarray) -> np.int64:
    """KMC2ChainInitialization: return the last state of a Markov chain over the indices of points.

    `distances` are the squared distances of the points to their nearest centres. The larger the
    distance of a point, the more likely the chain moves to that point.
    """
    if np.ndim(distances) != 1:
        raise InvalidArgumentError("distances must be a vector.")
    if not np.size(distances):
        raise InvalidArgumentError("Expected distances_tensor.size() > 0.")
    start = Philox(_check_scalar("seed", seed) & _SEED_BITS)
    chances = uniform(start, len(distances), np.dtype(np.float32))
    chosen = 0
    for place in range(1, len(distances)):
        if distances[place] > chances[place - 1] * distances[chosen]:
            chosen = place
    return np.int64(chosen)


def kmeans_plus_plus_initialization(
    points: np.ndarray,
    num_to_sample: np.ndarray,
    seed: np.ndarray,
    num_retries_per_sample: np.ndarray,
) -> np.ndarray:
    """KmeansPlusPlusInitialization: return initial centres `[num_to_sample, dims]`.

    The centres are chosen among `points` one after the other. For each, candidates are drawn with
    probabilities in proportion to their squared distances to the nearest chosen point. The
    candidate that makes the sum of all squared distances least is chosen.
    """
    _check_matrix("points", points)
    wanted = _check_scalar("num_to_sample", num_to_sample)
    retries = _check_scalar("num_retries_per_sample", num_retries_per_sample)
    if wanted <= 0:
        raise InvalidArgumentError("num_to_sample must be positive.")
    if wanted > len(points):
        raise InvalidArgumentError(
            f"Expected points.dim_size(0) >= num_to_sample: {len(points)} vs. {wanted}"
        )
    candidates = 1 + (retries if retries >= 0 else int(2 + np.log(wanted)))
    check_allocation((candidates,), np.float64)
    generator = np.random.default_rng(abs(_check_scalar("seed", seed)))
    chosen = [int(generator.integers(len(points)))]
    nearest = np.square(points - points[chosen[0]]).sum(axis=1, dtype=np.float64)
    while len(chosen) < wanted:
        limits = np.cumsum(nearest)
        drawn = np.searchsorted(limits, generator.random(candidates) * limits[-1], side="right")
        best, least = -1, np.inf
        for each in np.minimum(drawn, len(points) - 1).tolist():
            check_task()
            option = np.minimum(nearest, np.square(points - points[each]).sum(axis=1))
            total = option.sum()
            if best < 0 or total < least:
                best, least, closest = each, total, option
        chosen.append(best)
        nearest = closest
    return np.asarray(points)[chosen]


KERNELS = (
    KernelDef("KMC2ChainInitialization", kmc2_chain_initialization),
    KernelDef("KmeansPlusPlusInitialization", kmeans_plus_plus_initialization, expensive=True),
    KernelDef("NearestNeighbors", nearest_neighbors, expensive=True),
)
