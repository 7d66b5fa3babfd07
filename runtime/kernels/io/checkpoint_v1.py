"""Kernels that save and restore checkpoints in the V1 format.

Such a checkpoint is one file, or several files that match a pattern.

TF: tensorflow/core/kernels/save_op.cc, restore_op.cc, save_restore_tensor.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import text
from runtime.framework.dtypes import DataType
from runtime.framework.io.tensor_slice import TensorSlice, parse_shape_and_slice
from runtime.framework.io.tensor_slice_file import (
    NamedSlice,
    TensorSliceReader,
    write_tensor_slices,
)
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import shape_text

Types = Sequence[DataType]


def save(
    context: OpKernelContext,
    filename: np.ndarray,
    tensor_names: np.ndarray,
    *data: np.ndarray,
    T: Types,  # noqa: N803 - the attribute
) -> None:
    """Save: write whole tensors to a file."""
    specs = [""] * np.size(tensor_names)
    _save(context, filename, tensor_names, specs, data, T)


def save_slices(
    context: OpKernelContext,
    filename: np.ndarray,
    tensor_names: np.ndarray,
    shapes_and_slices: np.ndarray,
    *data: np.ndarray,
    T: Types,  # noqa: N803 - the attribute
) -> None:
    """SaveSlices: write `data` to a file.

    If an element of `shapes_and_slices` is not empty, it says which slice of a larger tensor the
    corresponding tensor is.
    """
    if np.size(shapes_and_slices) != np.size(tensor_names):
        raise InvalidArgumentError(
            f"Expected {np.size(tensor_names)} elements for the tensor shapes and slices but got "
            f"{np.size(shapes_and_slices)}"
        )
    specs = [text(spec) for spec in shapes_and_slices.ravel().tolist()]
    _save(context, filename, tensor_names, specs, data, T)


def _save(
    context: OpKernelContext,
    filename: np.ndarray,
    tensor_names: np.ndarray,
    specs: Sequence[str],
    data: Sequence[np.ndarray],
    types: Types,
) -> None:
    path = _single(filename, "filename", 0)
    names = [text(name) for name in tensor_names.ravel().tolist()]
    if len(names) != len(data):
        raise InvalidArgumentError(
            f"Expected totally {2 + len(names)} inputs as input #1 (which is a string tensor of "
            f"saved names) contains {len(names)} names, but received {2 + len(data)} inputs"
        )
    slices = [
        _named_slice(name, spec, value, dtype)
        for name, spec, value, dtype in zip(names, specs, data, types, strict=True)
    ]
    write_tensor_slices(path, slices, context.step.files)


def _named_slice(name: str, spec: str, value: np.ndarray, dtype: DataType) -> NamedSlice:
    shape = np.shape(value)
    if not spec:
        return NamedSlice(name, shape, TensorSlice.whole(len(shape)), value, dtype)
    full_shape, part = parse_shape_and_slice(spec)
    if part.shape_in(full_shape) != shape:
        raise InvalidArgumentError(
            "Slice in shape_and_slice specification does not match the shape of the tensor to  "
            f"save: {spec}, tensor: {shape_text(shape)}"
        )
    return NamedSlice(name, full_shape, part, value, dtype)


def restore(
    context: OpKernelContext, file_pattern: np.ndarray, tensor_name: np.ndarray, *, dt: DataType
) -> np.ndarray:
    """Restore: read a whole tensor."""
    return restore_slice(context, file_pattern, tensor_name, np.array(b"", object), dt=dt)


def restore_slice(
    context: OpKernelContext,
    file_pattern: np.ndarray,
    tensor_name: np.ndarray,
    shape_and_slice: np.ndarray,
    *,
    dt: DataType,
) -> np.ndarray:
    """RestoreSlice: read a tensor, or the slice of the tensor that `shape_and_slice` describes."""
    reader = TensorSliceReader(_single(file_pattern, "file_pattern", 0), context.step.files)
    name, spec = _first(tensor_name, "tensor_name"), _first(shape_and_slice, "shape_and_slice")
    return read_spec(reader, name, spec, dt)


def read_spec(reader: TensorSliceReader, name: str, spec: str, dtype: DataType) -> np.ndarray:
    """Read the slice that `spec` describes, or the whole tensor if `spec` is empty."""
    tensor = reader.tensor(name, dtype)
    if not spec:
        return reader.read(name, tensor, TensorSlice.whole(len(tensor.shape)))
    shape, part = parse_shape_and_slice(spec)
    if shape != tensor.shape:
        raise InvalidArgumentError(
            "Shape in shape_and_slice spec does not match the shape in the save file: "
            f"{shape_text(shape)}, save file shape: {shape_text(tensor.shape)}"
        )
    return reader.read(name, tensor, part)


def _first(value: np.ndarray, name: str) -> str:
    """Return the first element of a string tensor; TensorFlow ignores further elements."""
    if not np.size(value):
        raise InvalidArgumentError(f"Input {name} is empty; it must be a string scalar")
    return text(np.ravel(value)[0])


def _single(value: np.ndarray, name: str, index: int) -> str:
    if np.size(value) != 1:
        raise InvalidArgumentError(
            f"Input {index} ({name}) must be a string scalar; got a tensor of {np.size(value)} "
            "elements"
        )
    return text(np.asarray(value).item())


KERNELS = (
    KernelDef("Restore", restore, expensive=True),
    KernelDef("RestoreSlice", restore_slice, expensive=True),
    KernelDef("Save", save, expensive=True),
    KernelDef("SaveSlices", save_slices, expensive=True),
)
