"""Read and write checkpoints in the V1 format.

Each file is a sorted string table of SavedTensorSlices. The entry of key "" lists the tensors and
their slices; each slice has an entry of its own. All files that match a pattern are read as one
checkpoint.

Guarantees: a file gets its name only when it is complete. Sizes are checked before memory is
allocated.

TF: tensorflow/core/util/tensor_slice_reader.cc, tensor_slice_writer.cc, saved_tensor_slice.proto
"""

from __future__ import annotations

import dataclasses
import glob
import math
from collections.abc import Iterable, Sequence

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from runtime.framework.allocation import check_allocation
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType, from_number
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.new_files import NewFile
from runtime.framework.io.ordered_code import slice_key
from runtime.framework.io.sstable import read_table, write_table
from runtime.framework.io.tensor_slice import TensorSlice
from runtime.framework.op_kernel import FileGate
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_codec import (
    VALUE_FIELD,
    as_bytes,
    shape_from_proto,
    shape_to_proto,
    tensor_from_proto,
)

_META_KEY = b""
_VERSION = 1  # the version of the format. TF: TF_CHECKPOINT_VERSION
# The types that the format supports. TF: saved_tensor_slice_util.h
_TYPES = frozenset(
    (
        DataType.FLOAT, DataType.DOUBLE, DataType.INT32, DataType.INT16, DataType.INT8,
        DataType.UINT8, DataType.UINT16, DataType.QINT8, DataType.QUINT8, DataType.QINT32,
        DataType.INT64, DataType.BOOL, DataType.STRING, DataType.HALF, DataType.COMPLEX64,
        DataType.COMPLEX128,
    )
)  # fmt: skip
_COMPLEX_PART = {DataType.COMPLEX64: np.float32, DataType.COMPLEX128: np.float64}


@dataclasses.dataclass(slots=True)
class SlicedTensor:
    """A tensor of a checkpoint; `slices` holds (slice, index of the file that contains it)."""

    dtype: DataType
    shape: tuple[int, ...]
    slices: list[tuple[TensorSlice, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class NamedSlice:
    """A slice of a tensor to be written; `shape` is the shape of the whole tensor."""

    name: str
    shape: tuple[int, ...]
    part: TensorSlice
    value: np.ndarray
    dtype: DataType


class TensorSliceReader:
    """Reads the tensors of all files that match a pattern."""

    def __init__(self, pattern: str, files: FileGate) -> None:
        """Read the tables; `files` is checked for the pattern and for every matching file.

        Raises NotFoundError if no file matches, DataLossError if a file is not a table or is
        damaged, InternalError if files disagree on the type or shape of a tensor.
        """
        self._pattern = pattern
        files.check_read(pattern)
        paths = sorted(glob.glob(pattern, include_hidden=True))
        if not paths:
            raise NotFoundError(
                "Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
                f"for {pattern}"
            )
        self._tables = []
        self._tensors: dict[str, SlicedTensor] = {}
        for number, path in enumerate(paths):
            files.check_read(path)
            self._tables.append(_read_file(path))
            self._add_tensors(number, path)

    def _add_tensors(self, number: int, path: str) -> None:
        meta = _parse(self._tables[number].get(_META_KEY, b""), path).meta
        for saved in meta.tensor:
            dtype, _ = from_number(saved.type)
            shape = shape_from_proto(saved.shape)
            if shape is None or min(shape, default=0) < 0:
                raise DataLossError(f"{path}: tensor {saved.name} has no known shape")
            known = self._tensors.setdefault(saved.name, SlicedTensor(dtype, shape, []))
            if (known.dtype, known.shape) != (dtype, shape):
                raise InternalError(
                    f"Incompatible tensor shapes detected for tensor {saved.name}: existing = "
                    f"{shape_text(known.shape)}, new = {shape_text(shape)}"
                )
            known.slices += [(TensorSlice.from_proto(part), number) for part in saved.slice]

    def tensor(self, name: str, dtype: DataType) -> SlicedTensor:
        """Return the tensor `name`.

        Raises NotFoundError if there is no such tensor, InvalidArgumentError if its type is not
        `dtype`.
        """
        found = self._tensors.get(name)
        if found is None:
            raise NotFoundError(
                f'Tensor name "{name}" not found in checkpoint files {self._pattern}'
            )
        if found.dtype is not dtype:
            raise InvalidArgumentError(
                f"Expected to restore a tensor of type {dtype.tf_name}, got a tensor of type "
                f"{found.dtype.tf_name} instead: tensor_name = {name}"
            )
        return found

    def read(self, name: str, tensor: SlicedTensor, part: TensorSlice) -> np.ndarray:
        """Return the slice `part` of `tensor`, assembled from the stored slices.

        Raises InvalidArgumentError if the stored slices do not cover `part`.
        """
        check_allocation(part.shape_in(tensor.shape), tensor.dtype.numpy)
        result = np.empty(part.shape_in(tensor.shape), tensor.dtype.numpy)
        filled = np.zeros(result.shape, np.bool_)
        bounds = part.bounds(tensor.shape)
        for stored, number in tensor.slices:
            overlap = stored.overlap(bounds, tensor.shape)
            if overlap is not None:
                target, source = overlap
                result[target] = self._slice_value(name, tensor, stored, number)[source]
                filled[target] = True
        if not filled.all():
            raise InvalidArgumentError("Error copying slice data")
        return result

    def _slice_value(
        self, name: str, tensor: SlicedTensor, part: TensorSlice, number: int
    ) -> np.ndarray:
        data = self._tables[number].get(slice_key(raw_bytes(name), part))
        if data is None:
            raise DataLossError(f"{self._pattern}: slice {part} of {name} is missing")
        proto = _parse(data, self._pattern).data.data
        proto.dtype = int(tensor.dtype)  # type: ignore[assignment] # the same numbers
        proto.tensor_shape.CopyFrom(shape_to_proto(part.shape_in(tensor.shape)))
        try:
            return tensor_from_proto(proto)
        except OpError as error:
            raise DataLossError(f"{self._pattern}: {name}: {error.message}") from None


def _read_file(path: str) -> dict[bytes, bytes]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise file_error(error, path) from None
    try:
        return dict(read_table(data))
    except DataLossError as error:
        raise DataLossError(
            f"Unable to open table file {path}: DATA_LOSS: {error.message}: perhaps your file is "
            "in a different file format and you need to use a different restore operator?"
        ) from None


def _parse(data: bytes, path: str) -> pb.SavedTensorSlices:
    try:
        return pb.SavedTensorSlices.FromString(data)
    except DecodeError:
        raise DataLossError(f"{path}: an entry does not parse") from None


def write_tensor_slices(path: str, slices: Iterable[NamedSlice], files: FileGate) -> None:
    """Write a file of slices, several of which may belong to the same tensor.

    Raises InternalError if slices of a tensor disagree on its shape, UnimplementedError if a type
    is bfloat16, InvalidArgumentError if the format does not support a type for another reason.
    """
    files.check_write(path)
    meta: dict[str, pb.SavedSliceMeta] = {}
    entries: dict[bytes, bytes] = {}
    for each in slices:
        saved = meta.setdefault(
            each.name,
            pb.SavedSliceMeta(
                name=each.name,
                shape=shape_to_proto(each.shape),
                type=int(each.dtype),  # type: ignore[arg-type] # the same numbers
            ),
        )
        if shape_from_proto(saved.shape) != tuple(each.shape):
            raise InternalError(
                f"Mismatching shapes: existing tensor = {shape_text(shape_from_proto(saved.shape))}"
                f", trying to add name {each.name}, shape = {shape_text(each.shape)}"
            )
        saved.slice.append(each.part.to_proto())
        data = pb.SavedSlice(
            name=each.name, slice=each.part.to_proto(), data=_values_proto(each.value, each.dtype)
        )
        key = slice_key(raw_bytes(each.name), each.part)
        entries[key] = pb.SavedTensorSlices(data=data).SerializeToString(deterministic=True)
    versions = pb.VersionDef(producer=_VERSION)
    head = pb.SavedTensorSlices(
        meta=pb.SavedTensorSliceMeta(tensor=[meta[n] for n in sorted(meta)], versions=versions)
    )
    entries[_META_KEY] = head.SerializeToString(deterministic=True)
    with NewFile(path) as new:
        new.write(write_table(sorted(entries.items())))
        new.rename()


def _values_proto(value: np.ndarray, dtype: DataType) -> pb.TensorProto:
    """Return a TensorProto with the values only; the entry of key "" holds the type and shape."""
    if dtype is DataType.BFLOAT16:
        raise UnimplementedError("Saving data type bfloat16 not yet supported")
    if dtype not in _TYPES:
        raise InvalidArgumentError(
            f"Tensor slice serialization not implemented for dtype {int(dtype)}"
        )
    flat = np.ascontiguousarray(value).reshape(math.prod(np.shape(value)))
    values: Sequence[object]
    if dtype is DataType.STRING:
        values = [as_bytes(item) for item in flat.tolist()]
    elif dtype is DataType.HALF:
        values = flat.view(np.uint16).tolist()
    elif dtype in _COMPLEX_PART:
        values = flat.view(_COMPLEX_PART[dtype]).tolist()
    else:
        values = flat.tolist()
    return pb.TensorProto(**{VALUE_FIELD[dtype]: values})  # type: ignore[arg-type] # one of the *_val fields
