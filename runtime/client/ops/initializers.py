"""Initializers of variables: functions of a shape and a type, for `get_variable`.

TF: tensorflow/python/ops/init_ops.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.element_types import DTypeLike, as_dtype
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.operation import Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import constant
from runtime.framework.dtypes import DataType

_DEFAULT_SEED = 87654321  # graph seed to use if only the op's seed is given (TF: random_seed.py)
# (shape, dtype) → a tensor of that shape and type
Initializer = Callable[..., Tensor]


def constant_initializer(value: TensorLike = 0, dtype: DTypeLike = DataType.FLOAT) -> Initializer:
    """Return an initializer that fills with `value`.

    A list fills in row-major order; its last value is repeated for the rest.
    """

    def initialize(shape: Sequence[int], dtype: DTypeLike = dtype) -> Tensor:
        return constant(value, dtype, shape)

    return initialize


def zeros_initializer(dtype: DTypeLike = DataType.FLOAT) -> Initializer:
    """Return an initializer that fills with zeros: False for bool, empty strings for STRING."""

    def initialize(shape: Sequence[int], dtype: DTypeLike = dtype) -> Tensor:
        wanted = as_dtype(dtype)
        value = b"" if wanted is DataType.STRING else np.zeros((), wanted.numpy)
        return constant(value, wanted, shape)

    return initialize


def ones_initializer(dtype: DTypeLike = DataType.FLOAT) -> Initializer:
    """Return an initializer that fills with ones."""

    def initialize(shape: Sequence[int], dtype: DTypeLike = dtype) -> Tensor:
        return constant(np.ones((), as_dtype(dtype).numpy), dtype, shape)

    return initialize


def random_uniform_initializer(
    minval: float = 0.0,
    maxval: float = 1.0,
    seed: int | None = None,
    dtype: DTypeLike = DataType.FLOAT,
) -> Initializer:
    """Return an initializer that draws from the uniform distribution in [minval, maxval)."""

    def initialize(shape: Sequence[int], dtype: DTypeLike = dtype) -> Tensor:
        wanted = as_dtype(dtype)
        draw = op_function("RandomUniform")(_sizes(shape), dtype=wanted, **seeds_of(seed))
        return draw * (maxval - minval) + minval  # type: ignore[no-any-return]

    return initialize


def random_normal_initializer(
    mean: float = 0.0,
    stddev: float = 1.0,
    seed: int | None = None,
    dtype: DTypeLike = DataType.FLOAT,
) -> Initializer:
    """Return an initializer that draws from a normal distribution."""
    return _normal("RandomStandardNormal", mean, stddev, seed, dtype)


def truncated_normal_initializer(
    mean: float = 0.0,
    stddev: float = 1.0,
    seed: int | None = None,
    dtype: DTypeLike = DataType.FLOAT,
) -> Initializer:
    """Return an initializer that draws from a truncated normal distribution.

    All values are within two standard deviations of the mean.
    """
    return _normal("TruncatedNormal", mean, stddev, seed, dtype)


def glorot_uniform_initializer(
    seed: int | None = None, dtype: DTypeLike = DataType.FLOAT
) -> Initializer:
    """Return an initializer that draws uniformly from ±√(6 / (fan in + fan out)).

    It is the default initializer of floating-point variables.
    """

    def initialize(shape: Sequence[int], dtype: DTypeLike = dtype) -> Tensor:
        fan_in, fan_out = _fans(shape)
        limit = math.sqrt(6 / max(1, fan_in + fan_out))
        return random_uniform_initializer(-limit, limit, seed)(shape, dtype)

    return initialize


def _normal(op: str, mean: float, stddev: float, seed: int | None, dtype: DTypeLike) -> Initializer:
    def initialize(shape: Sequence[int], dtype: DTypeLike = dtype) -> Tensor:
        draw = op_function(op)(_sizes(shape), dtype=as_dtype(dtype), **seeds_of(seed))
        return draw * stddev + mean  # type: ignore[no-any-return]

    return initialize


def _sizes(shape: Sequence[int]) -> np.ndarray:
    return np.array(list(shape), np.int32)


def set_random_seed(seed: int | None) -> None:
    """Set the graph seed of the default graph, so that every session draws the same numbers."""
    get_default_graph().seed = seed


def seeds_of(seed: int | None) -> dict[str, int]:
    """Return the seed attributes of a random op, from the graph seed and `seed`, the op's seed.

    If neither is set, none are returned, and the runtime picks a random seed. TF: random_seed.py
    (get_seed)
    """
    graph = get_default_graph()
    if graph.seed is None:
        return {} if seed is None else {"seed": _DEFAULT_SEED, "seed2": seed}
    return {"seed": graph.seed, "seed2": seed if seed is not None else graph.version}


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return (fan in, fan out): the numbers of inputs and outputs of a unit with these weights.

    The leading dimensions of a filter count for both.
    """
    sizes = list(shape)
    if len(sizes) < 2:
        size = sizes[0] if sizes else 1
        return size, size
    field = math.prod(sizes[:-2])
    return sizes[-2] * field, sizes[-1] * field
