"""tf.compat.v1's array functions that have other parameters than their op.

`op_names` has the functions that have the same parameters.

TF: tensorflow/python/ops/array_ops.py
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from runtime.client.framework.argument_types import SizesLike, TensorLike
from runtime.client.framework.conversion import first_tensor
from runtime.client.framework.element_types import DTypeLike, as_dtype
from runtime.client.framework.operation import Tensor
from runtime.client.framework.tensor_shape import TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import constant, convert_to_tensor
from runtime.framework.dtypes import DataType


def reshape(tensor: TensorLike, shape: SizesLike, name: str | None = None) -> Tensor:
    """Return the values of `tensor` in another shape; one size may be −1, and is then inferred."""
    return _one("Reshape", tensor, as_sizes(shape), name=name)


def shape(
    input: TensorLike, name: str | None = None, out_type: DTypeLike = DataType.INT32
) -> Tensor:
    """Return the shape of `input`, as a tensor `[rank]`.

    It is a Const if the static shape is fully known.
    """
    tensor = convert_to_tensor(input, name="input")
    if tensor.shape.is_fully_defined():
        with tensor.graph.as_default():
            return constant(tensor.shape.as_list(), out_type, name=name or "Shape")
    return _one("Shape", tensor, as_dtype(out_type), name=name)


def size(
    input: TensorLike, name: str | None = None, out_type: DTypeLike = DataType.INT32
) -> Tensor:
    """Return the number of elements, as a scalar tensor."""
    return _one("Size", input, as_dtype(out_type), name=name)


def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the number of dimensions, as a scalar tensor."""
    return _one("Rank", input, name=name)


def expand_dims(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dim: TensorLike | None = None,
) -> Tensor:
    """Return `input` with a dimension of size 1 inserted at `axis`."""
    return _one("ExpandDims", input, dim if axis is None else axis, name=name)


def squeeze(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    squeeze_dims: TensorLike | None = None,
) -> Tensor:
    """Remove the dimensions of size 1 listed in `axis` from `input` (None: all of size 1)."""
    axis = squeeze_dims if axis is None else axis
    axes = [] if axis is None else axis if isinstance(axis, list | tuple) else [axis]
    return _one("Squeeze", input, list(axes), name=name)


def concat(values: TensorLike, axis: TensorLike, name: str = "concat") -> Tensor:
    """Concatenate the tensors of `values` along `axis`."""
    tensors = values if isinstance(values, list | tuple) else [values]
    if len(tensors) == 1:
        return _one("Identity", tensors[0], name=name)
    return _one("ConcatV2", list(tensors), axis, name=name)


def stack(values: Iterable[TensorLike], axis: int = 0, name: str = "stack") -> Tensor:
    """Stack the tensors of `values`, which must have one shape, along a new axis `axis`."""
    return _one("Pack", list(values), axis, name=name)


def unstack(
    value: TensorLike, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """Split `value` into its slices along `axis`, and remove that axis from each.

    Raises ValueError if `num` is None and the size of the axis is unknown.
    """
    tensor = convert_to_tensor(value, name="value")
    if num is None:
        num = tensor.shape[axis] if tensor.shape.rank is not None else None
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {tensor.shape}")
    return list(op_function("Unpack")(tensor, num, axis, name=name))


def split(
    value: TensorLike,
    num_or_size_splits: TensorLike,
    axis: TensorLike = 0,
    num: int | None = None,
    name: str = "split",
) -> list[Tensor]:
    """Split `value` along `axis` into a number of equal parts, or into parts of listed sizes.

    Raises ValueError if the number of listed sizes is unknown and `num` is None.
    """
    if isinstance(num_or_size_splits, int | np.integer):
        return list(op_function("Split")(axis, value, int(num_or_size_splits), name=name))
    sizes = convert_to_tensor(num_or_size_splits, name="size_splits")
    count = num if num is not None else sizes.shape[0] if sizes.shape.rank else None
    if count is None:
        raise ValueError(f"Cannot infer argument `num` from shape {sizes.shape}")
    return list(op_function("SplitV")(value, sizes, axis, count, name=name))


def transpose(
    a: TensorLike, perm: TensorLike | None = None, name: str = "transpose", conjugate: bool = False
) -> Tensor:
    """Reorder the axes of `a` by `perm` (default: reverse them).

    If `conjugate` is set, complex values are conjugated too.
    """
    tensor = convert_to_tensor(a, name="a")
    op = "ConjugateTranspose" if conjugate and tensor.dtype.numpy.kind == "c" else "Transpose"
    with tensor.graph.as_default(), tensor.graph.name_scope(name) as scope:
        if perm is None and tensor.shape.rank is not None:
            perm = np.arange(tensor.shape.rank, dtype=np.int32)[::-1]
        elif perm is None:
            last = op_function("Sub")(op_function("Rank")(tensor), 1)
            perm = op_function("Range")(last, -1, -1)
        return _one(op, tensor, perm, name=scope)


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: object = None,
    name: str | None = None,
    axis: TensorLike | None = None,
    batch_dims: int = 0,
) -> Tensor:
    """Return the slices of `params` at `indices` along `axis`.

    The default axis is the first one after the `batch_dims` batch dimensions.
    """
    del validate_indices  # has no effect in TensorFlow either
    axis = batch_dims if axis is None else axis
    return _one("GatherV2", params, indices, axis, batch_dims=batch_dims, name=name)


def slice(
    input_: TensorLike, begin: TensorLike, size: TensorLike, name: str | None = None
) -> Tensor:
    """Return the block of `input_` that starts at `begin` and has shape `size`.

    If a size is −1, the block extends to the end of that dimension.
    """
    return _one("Slice", input_, begin, size, name=name)


def strided_slice(
    input_: TensorLike,
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: object = None,
    name: str | None = None,
) -> Tensor:
    """Return `input_[begin:end:strides]`, adjusted by the masks of the StridedSlice op."""
    del var  # TensorFlow needs it for assignment to a slice, which is a separate op here
    if strides is None:
        strides = op_function("OnesLike")(begin)
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return _one("StridedSlice", input_, begin, end, strides, *masks, name=name)


def pad(
    tensor: TensorLike,
    paddings: TensorLike,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: TensorLike = 0,
) -> Tensor:
    """Add `paddings[d] = [before, after]` elements to each dimension d of `tensor`.

    Raises ValueError if `mode` is unknown.
    """
    match mode.upper():
        case "CONSTANT":
            if first_tensor(constant_values) is None and np.all(constant_values == 0):
                return _one("Pad", tensor, paddings, name=name)
            return _one("PadV2", tensor, paddings, constant_values, name=name)
        case "REFLECT" | "SYMMETRIC":
            return _one("MirrorPad", tensor, paddings, mode.upper(), name=name)
    raise ValueError(
        'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or '
        f'"SYMMETRIC". Received `mode` = {mode}'
    )


def where(
    condition: TensorLike,
    x: TensorLike | None = None,
    y: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return `x` where the condition is true, else `y`.

    If both are None, return the indices `[n, rank]` at which the condition is true. Raises
    ValueError if only one of them is None.
    """
    if x is None and y is None:
        return _one("Where", convert_to_tensor(condition, DataType.BOOL, "condition"), name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return _one("Select", condition, x, y, name=name or "Select")


def boolean_mask(
    tensor: TensorLike, mask: TensorLike, name: str = "boolean_mask", axis: int = 0
) -> Tensor:
    """Return the elements of `tensor`, or its slices from `axis` on, at which `mask` is true.

    Raises ValueError if the mask is a scalar or its rank is unknown.
    """
    values, chosen = convert_to_tensor(tensor, name="tensor"), convert_to_tensor(mask, name="mask")
    depth = chosen.shape.rank
    if not depth:
        raise ValueError(
            "mask cannot be scalar."
            if depth == 0
            else "Number of mask dimensions must be specified, even if some dimensions are None."
        )
    with values.graph.as_default(), values.graph.name_scope(name) as scope:
        sizes = op_function("Shape")(values)
        parts = [sizes[:axis], [-1], sizes[axis + depth :]]
        flat = reshape(values, concat(parts, 0))
        found = squeeze(where(reshape(chosen, [-1])), [1])
        return _one("GatherV2", flat, found, axis, name=scope)


def one_hot(
    indices: TensorLike,
    depth: TensorLike,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str = "one_hot",
) -> Tensor:
    """Return one-hot vectors along a new axis of size `depth`.

    Such a vector has `on_value` (default 1) at the index and `off_value` (default 0) elsewhere. If
    an index is outside `[0, depth)`, the vector has `off_value` only.
    """
    wanted = as_dtype(dtype) if dtype is not None else None
    for value in (on_value, off_value):
        tensor = first_tensor(value)
        if wanted is None and value is not None:
            wanted = tensor.dtype if tensor is not None else convert_to_tensor(value).dtype
    wanted = wanted or DataType.FLOAT
    on = convert_to_tensor(1 if on_value is None else on_value, wanted, "on_value")
    off = convert_to_tensor(0 if off_value is None else off_value, wanted, "off_value")
    return _one("OneHot", indices, depth, on, off, axis=-1 if axis is None else axis, name=name)


def zeros(shape: SizesLike, dtype: DTypeLike = DataType.FLOAT, name: str | None = None) -> Tensor:
    """Return a tensor of zeros: False for bool, empty strings for STRING."""
    return _filled(shape, as_dtype(dtype), 0, name or "zeros")


def ones(shape: SizesLike, dtype: DTypeLike = DataType.FLOAT, name: str | None = None) -> Tensor:
    """Return a tensor of ones: True for bool."""
    return _filled(shape, as_dtype(dtype), 1, name or "ones")


def _filled(shape: SizesLike, dtype: DataType, value: int, name: str) -> Tensor:
    element = b"" if dtype is DataType.STRING else np.full((), value, dtype.numpy)
    if first_tensor(shape) is None:
        return constant(element, dtype, TensorShape(shape).as_list(), name)
    return _one("Fill", shape, convert_to_tensor(element, dtype), name=name)


def zeros_like(
    tensor: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    optimize: bool = True,
) -> Tensor:
    """Return zeros of the shape of `tensor`, and of its type unless `dtype` is given."""
    return _like(tensor, dtype, name, "ZerosLike", zeros)


def ones_like(
    tensor: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    optimize: bool = True,
) -> Tensor:
    """Return ones of the shape of `tensor`, and of its type unless `dtype` is given."""
    return _like(tensor, dtype, name, "OnesLike", ones)


def _like(
    tensor: TensorLike,
    dtype: DTypeLike | None,
    name: str | None,
    op: str,
    fill: Callable[[SizesLike, DTypeLike, str], Tensor],
) -> Tensor:
    like = convert_to_tensor(tensor, name="tensor")
    name = name or {"ZerosLike": "zeros_like", "OnesLike": "ones_like"}[op]
    if dtype is None or as_dtype(dtype) is like.dtype:
        return _one(op, like, name=name)
    filled: Tensor = fill(op_function("Shape")(like), dtype, name)
    return filled


def sequence_mask(
    lengths: TensorLike,
    maxlen: TensorLike | None = None,
    dtype: DTypeLike = DataType.BOOL,
    name: str | None = None,
) -> Tensor:
    """Return `[…, maxlen]`: the first `lengths[…]` elements of each row are true."""
    counts = convert_to_tensor(lengths, name="lengths")
    with counts.graph.as_default(), counts.graph.name_scope(name or "SequenceMask"):
        if maxlen is None:
            axes = op_function("Range")(0, op_function("Rank")(counts), 1)
            maxlen = op_function("Maximum")(op_function("Max")(counts, axes), 0)
        places = op_function("Cast")(op_function("Range")(0, maxlen, 1), DstT=counts.dtype)
        mask = op_function("Less")(places, expand_dims(counts, -1))
        wanted = as_dtype(dtype)
        return mask if wanted is DataType.BOOL else _one("Cast", mask, wanted)


def as_sizes(shape: SizesLike) -> TensorLike:
    """Convert a shape argument (TensorShape, sizes or tensor) to what ops take.

    An empty list becomes an int32 array, because it would otherwise be float32.
    """
    if isinstance(shape, TensorShape):
        return np.array(shape.as_list(), np.int32)
    is_empty = isinstance(shape, Sequence) and builtins.len(shape) == 0
    return np.zeros(0, np.int32) if is_empty else shape


def _one(op: str, *arguments: TensorLike, **attributes: object) -> Tensor:
    result: Tensor = op_function(op)(*arguments, **attributes)
    return result
