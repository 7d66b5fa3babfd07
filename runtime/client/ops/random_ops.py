"""Random tensors of tf.compat.v1, which each step draws again; for seeds see `set_random_seed`.

TF: tensorflow/python/ops/random_ops.py
"""

from __future__ import annotations

from runtime.client.framework.argument_types import SizesLike, TensorLike
from runtime.client.framework.element_types import DTypeLike, as_dtype
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.operation import Tensor
from runtime.client.ops import op_function
from runtime.client.ops.array_ops import as_sizes
from runtime.client.ops.construction import convert_to_tensor
from runtime.client.ops.initializers import seeds_of
from runtime.framework.dtypes import DataType


def random_uniform(
    shape: SizesLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = DataType.FLOAT,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from the uniform distribution in [minval, maxval); `maxval` is 1 by default.

    Raises ValueError if `dtype` is an integer type and `maxval` is None.
    """
    wanted = as_dtype(dtype)
    if maxval is None:
        if wanted.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {wanted.name_on_wire}")
        maxval = 1
    with get_default_graph().name_scope(name or "random_uniform") as scope:
        low = convert_to_tensor(minval, wanted, "min")
        high = convert_to_tensor(maxval, wanted, "max")
        if wanted.is_integer:
            draw = op_function("RandomUniformInt")
            return _tensor(draw(as_sizes(shape), low, high, **seeds_of(seed), name=scope))
        unit = op_function("RandomUniform")(as_sizes(shape), wanted, **seeds_of(seed))
        return _tensor(op_function("AddV2")(unit * (high - low), low, name=scope))


def random_normal(
    shape: SizesLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = DataType.FLOAT,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from a normal distribution."""
    return _normal(
        "RandomStandardNormal", shape, mean, stddev, dtype, seed, name or "random_normal"
    )


def truncated_normal(
    shape: SizesLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = DataType.FLOAT,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from a normal distribution, within two standard deviations of the mean."""
    return _normal("TruncatedNormal", shape, mean, stddev, dtype, seed, name or "truncated_normal")


def _normal(
    op: str,
    shape: SizesLike,
    mean: TensorLike,
    stddev: TensorLike,
    dtype: DTypeLike,
    seed: int | None,
    name: str,
) -> Tensor:
    wanted = as_dtype(dtype)
    with get_default_graph().name_scope(name) as scope:
        centre = convert_to_tensor(mean, wanted, "mean")
        deviation = convert_to_tensor(stddev, wanted, "stddev")
        unit = op_function(op)(as_sizes(shape), wanted, **seeds_of(seed))
        return _tensor(op_function("AddV2")(unit * deviation, centre, name=scope))


def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """Return the rows of `value` in a random order."""
    return _tensor(op_function("RandomShuffle")(value, **seeds_of(seed), name=name))


def multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: DTypeLike = DataType.INT64,
) -> Tensor:
    """Draw `[batch, num_samples]` classes with the probabilities softmax(logits).

    `logits` has the shape `[batch, classes]`.
    """
    wanted = as_dtype(output_dtype)
    draw = op_function("Multinomial")
    return _tensor(draw(logits, num_samples, **seeds_of(seed), output_dtype=wanted, name=name))


def _tensor(result: object) -> Tensor:
    assert isinstance(result, Tensor)
    return result
