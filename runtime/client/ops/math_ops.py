"""tf.compat.v1's math functions that have other parameters than their op.

`op_names` has the functions that have the same parameters.

TF: tensorflow/python/ops/math_ops.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.conversion import first_tensor
from runtime.client.framework.element_types import DTypeLike, as_dtype
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.op_call import OpResult, graph_of
from runtime.client.framework.operation import Tensor
from runtime.client.framework.operators import apply_operator
from runtime.client.ops import op_function, op_names
from runtime.client.ops.construction import convert_to_tensor
from runtime.client.ops.sparse_values import DenseOrSparse, SparseTensor
from runtime.framework.dtypes import DataType

_MATRIX_RANK = 2


def __getattr__(name: str) -> Callable[..., OpResult]:
    found = op_names.function(name)
    if found is None:
        raise AttributeError(f"There is no function {name!r}; `ops` has every op")
    return found


def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x + y with broadcasting; strings are concatenated."""
    return _operate("add", name or "Add", x, y)


def add_n(inputs: Tensor | Iterable[TensorLike], name: str | None = None) -> Tensor:
    """Return the sum of tensors of one shape and type. Raises ValueError if there is none."""
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not tensors:
        raise ValueError("inputs must be an iterable of at least one Tensor with the same dtype")
    if len(tensors) == 1:
        return _only(op_function("Identity")(tensors[0], name=name))
    return _only(op_function("AddN")(tensors, name=name))


def abs(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the absolute value; for a complex tensor, that is a real tensor."""
    return _operate("Abs", name, x)


def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x / y as in Python 3: the quotient of integers is floating-point."""
    return _operate("truediv", name, x, y)


divide = truediv


def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x // y, rounded towards −∞."""
    return _operate("floordiv", name, x, y)


def div(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x / y as in Python 2: the quotient of integers is an integer, rounded towards −∞."""
    found = [each for each in map(first_tensor, (x, y)) if each is not None]
    tensor = found[0] if found else convert_to_tensor(x)
    operator = "floordiv" if tensor.dtype.is_integer else "truediv"
    return _operate(operator, name or "div", x, y)


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> DenseOrSparse:
    """Convert `x` to `dtype`; a tensor that already has that type is returned unchanged."""
    wanted = as_dtype(dtype)
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, cast(x.values, wanted, name), x.dense_shape)
    tensor = convert_to_tensor(x, name="x")
    if tensor.dtype is wanted:
        return tensor
    return _only(op_function("Cast")(tensor, DstT=wanted, name=name))


def to_float(x: TensorLike, name: str = "ToFloat") -> DenseOrSparse:
    """Convert `x` to float32 with `cast`."""
    return cast(x, DataType.FLOAT, name)


def to_double(x: TensorLike, name: str = "ToDouble") -> DenseOrSparse:
    """Convert `x` to float64 with `cast`."""
    return cast(x, DataType.DOUBLE, name)


def to_int32(x: TensorLike, name: str = "ToInt32") -> DenseOrSparse:
    """Convert `x` to int32 with `cast`."""
    return cast(x, DataType.INT32, name)


def to_int64(x: TensorLike, name: str = "ToInt64") -> DenseOrSparse:
    """Convert `x` to int64 with `cast`."""
    return cast(x, DataType.INT64, name)


def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the matrix product `[…, n, k]` of `a` `[…, n, m]` and `b` `[…, m, k]`.

    Batch dimensions are broadcast. Raises ValueError if an operand is to be both transposed and
    adjoined.
    """
    for letter, transpose, adjoint in (
        ("a", transpose_a, adjoint_a),
        ("b", transpose_b, adjoint_b),
    ):
        if transpose and adjoint:
            raise ValueError(
                f"Only one of `transpose_{letter}` and `adjoint_{letter}` can be True. Received "
                f"`transpose_{letter}`={transpose}, `adjoint_{letter}`={adjoint}."
            )
    graph = graph_of([a, b], get_default_graph)
    with graph.as_default(), graph.name_scope(name or "MatMul") as scope:
        x = convert_to_tensor(a, name="a")
        is_tensor = first_tensor(b) is not None
        rank = convert_to_tensor(b).shape.rank if is_tensor else np.asarray(b).ndim
        if _are_matrices(x.shape.rank, rank) and not (adjoint_a or adjoint_b):
            return _only(op_function("MatMul")(x, b, transpose_a, transpose_b, name=scope))
        if x.dtype.numpy.kind == "c":  # BatchMatMulV2 adjoins but can't transpose
            x = op_function("Conj")(x) if transpose_a else x
            b = op_function("Conj")(b) if transpose_b else b
        flags = {"adj_x": adjoint_a or transpose_a, "adj_y": adjoint_b or transpose_b}
        return _only(op_function("BatchMatMulV2")(x, b, **flags, name=scope))


def _are_matrices(*ranks: int | None) -> bool:
    """Return whether MatMul takes operands of these ranks (None: unknown).

    That is the case if no rank is above 2 and at least one is known to be 2.
    """
    return _MATRIX_RANK in ranks and not any((rank or 0) > _MATRIX_RANK for rank in ranks)


def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str = "range",
) -> Tensor:
    """Return the numbers start, start + delta, … below `limit`, as a tensor `[n]`.

    If only one argument is given, it is the limit and the numbers start at 0.
    """
    if limit is None:
        start, limit = 0, start
    wanted = None if dtype is None else as_dtype(dtype)
    with get_default_graph().name_scope(name) as scope:
        parts = {"start": start, "limit": limit, "delta": delta}
        tensors = {key: convert_to_tensor(value, None, key) for key, value in parts.items()}
        if wanted is None:
            wanted = max((each.dtype for each in tensors.values()), key=_RANGE_TYPES.index)
        tensors = {key: cast(each, wanted) for key, each in tensors.items()}
        return _only(op_function("Range")(**tensors, name=scope))


_RANGE_TYPES = [DataType.INT32, DataType.INT64, DataType.FLOAT, DataType.DOUBLE]


def argmax(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dimension: TensorLike | None = None,
    output_type: DTypeLike = DataType.INT64,
) -> Tensor:
    """Return the index of the largest value along `axis` (default 0)."""
    return _extreme("ArgMax", input, axis, name, dimension, output_type)


def argmin(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dimension: TensorLike | None = None,
    output_type: DTypeLike = DataType.INT64,
) -> Tensor:
    """Return the index of the smallest value along `axis` (default 0)."""
    return _extreme("ArgMin", input, axis, name, dimension, output_type)


def _extreme(
    op: str,
    x: TensorLike,
    axis: TensorLike,
    name: str | None,
    old_axis: TensorLike,
    out: DTypeLike,
) -> Tensor:
    axis = old_axis if axis is None else axis
    return _only(
        op_function(op)(x, 0 if axis is None else axis, output_type=as_dtype(out), name=name)
    )


def cumsum(
    x: TensorLike,
    axis: TensorLike = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the cumulative sums along `axis`.

    If `exclusive` is set, an element is not part of its own sum.
    """
    return _only(op_function("Cumsum")(x, axis, exclusive, reverse, name=name))


def cumprod(
    x: TensorLike,
    axis: TensorLike = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the cumulative products along `axis`.

    If `exclusive` is set, an element is not part of its own product.
    """
    return _only(op_function("Cumprod")(x, axis, exclusive, reverse, name=name))


def clip_by_value(
    t: TensorLike,
    clip_value_min: TensorLike,
    clip_value_max: TensorLike,
    name: str = "clip_by_value",
) -> Tensor:
    """Limit each element of `t` to [clip_value_min, clip_value_max]."""
    tensor = convert_to_tensor(t, name="t")
    with tensor.graph.as_default(), tensor.graph.name_scope(name) as scope:
        bounded = op_function("Minimum")(tensor, clip_value_max)
        return _only(op_function("Maximum")(bounded, clip_value_min, name=scope))


def _reduction(op: str, words: str) -> Callable[..., Tensor]:
    def reduce(
        input_tensor: TensorLike,
        axis: TensorLike | None = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: TensorLike | None = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        axis = reduction_indices if axis is None else axis
        keep = bool(keep_dims if keepdims is None else keepdims)
        tensor = convert_to_tensor(input_tensor, name="input_tensor")
        with tensor.graph.as_default():
            axes = _all_axes(tensor) if axis is None else axis
            return _only(op_function(op)(tensor, axes, keep, name=name or op))

    reduce.__doc__ = f"{words} along `axis` (one, a list, or None: all)."
    return reduce


def _all_axes(tensor: Tensor) -> np.ndarray | Tensor:
    rank = tensor.shape.rank
    if rank is not None:
        return np.arange(rank, dtype=np.int32)
    return range(0, op_function("Rank")(tensor))


reduce_sum = _reduction("Sum", "The sum")
reduce_mean = _reduction("Mean", "The mean")
reduce_prod = _reduction("Prod", "The product")
reduce_max = _reduction("Max", "The largest value")
reduce_min = _reduction("Min", "The smallest value")
reduce_all = _reduction("All", "Whether all are true")
reduce_any = _reduction("Any", "Whether any is true")


def logical_xor(x: TensorLike, y: TensorLike, name: str = "LogicalXor") -> Tensor:
    """Return whether exactly one of x and y is true, elementwise."""
    return _only(op_function("NotEqual")(x, y, name=name))


def _operate(operator: str, name: str | None, *operands: TensorLike) -> Tensor:
    return apply_operator(graph_of(operands, get_default_graph), operator, operands, name)


def _only(result: object) -> Tensor:
    assert isinstance(result, Tensor)
    return result
