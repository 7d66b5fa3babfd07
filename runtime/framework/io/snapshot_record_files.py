"""Read and write the files of snapshots of versions 0 and 1, which hold no TFRecords.

A record is its length (u64, little-endian) and its bytes, without a checksum. In a file without
compression, or compressed as a whole with GZIP, a record is one element, a SnapshotRecord. With
SNAPPY, a file of version 0 is compressed as a whole, and an element of version 1 is two records:
the sizes of its tensors, and one snappy block of all tensors, numbers as they lie in memory and
other tensors as TensorProtos.

TF: tensorflow/core/data/snapshot_utils.cc (CustomReader, CustomWriter)
"""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
import weakref
import zlib
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import (
    DataLossError,
    InternalError,
    OpError,
    ResourceExhaustedError,
)
from runtime.framework.allocation import tensor_limit
from runtime.framework.data.dataset import Element
from runtime.framework.dtypes import DataType
from runtime.framework.io.bounded_reads import read_at_most
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.record_files import open_records
from runtime.framework.io.snappy import compress, decompress
from runtime.framework.op_kernel import FileGate
from runtime.framework.tensor_codec import shape_to_proto, tensor_from_proto, tensor_to_proto
from runtime.framework.tensor_value import TensorValue
from runtime.framework.variant_codec import variants_from_proto, variants_to_proto

_LENGTH = struct.Struct("<Q")
_NOT_IN_MEMORY = (DataType.STRING, DataType.RESOURCE, DataType.VARIANT)


def read_record_file(
    path: str, compression: str, version: int, types: Sequence[DataType], files: FileGate
) -> Iterator[Element]:
    """Yield the elements of a file of version 0 or 1.

    Raises DataLossError if the file is damaged, InternalError if the tensors of an element have
    other sizes than the file says, ResourceExhaustedError if a tensor is too large.
    """
    files.check_read(path)
    as_blocks = version == 1 and compression == "SNAPPY"
    with open_records(path, "" if as_blocks else compression) as file:
        while (record := _read_record(file, path)) is not None:
            element = _block_element(file, path, record, types) if as_blocks else _element(record)
            if len(element) != len(types):
                raise DataLossError(
                    f"An element of {len(element)} tensors in {path}, expected {len(types)}"
                )
            yield element


def _read_record(file: IO[bytes], path: str) -> bytes | None:
    try:
        header = file.read(_LENGTH.size)
        if not header:
            return None
        length = _LENGTH.unpack(header)[0] if len(header) == _LENGTH.size else 0
        if length > tensor_limit():
            raise ResourceExhaustedError(
                f"A record of {length} bytes in {path}; a tensor takes at most {tensor_limit()}"
            )
        data = read_at_most(file, length)
    except (OSError, EOFError, zlib.error) as error:
        raise DataLossError(f"{path} is damaged: {error}") from None
    if len(header) != _LENGTH.size or len(data) != length:
        raise DataLossError(f"{path} ends within a record")
    return data


def _element(record: bytes) -> Element:
    try:
        return tuple(map(_tensor, pb.SnapshotRecord.FromString(record).tensor))
    except DecodeError:
        raise DataLossError("Unable to parse tensor from proto.") from None


def _tensor(proto: pb.TensorProto) -> TensorValue:
    if proto.dtype == pb.DT_VARIANT:
        return variants_from_proto(proto)
    return tensor_from_proto(proto, tensor_limit())


def _block_element(file: IO[bytes], path: str, record: bytes, types: Sequence[DataType]) -> Element:
    try:
        metadata = pb.SnapshotTensorMetadata.FromString(record).tensor_metadata
    except DecodeError:
        raise DataLossError("Could not parse SnapshotTensorMetadata") from None
    block = _read_record(file, path)
    if block is None or len(metadata) != len(types):
        raise DataLossError(f"{path} has no element of {len(types)} tensors where one begins")
    data = decompress(block, tensor_limit())
    sizes = [_stored_bytes(each, kind) for each, kind in zip(metadata, types, strict=True)]
    if sum(sizes) != len(data):
        raise InternalError(
            f"Uncompressed size mismatch. Snappy expects {len(data)} whereas the tensor metadata "
            f"suggests {sum(sizes)}"
        )
    element = []
    start = 0
    for each, kind, size in zip(metadata, types, sizes, strict=True):
        element.append(_stored_tensor(data[start : start + size], each, kind))
        start += size
    return tuple(element)


def _stored_bytes(metadata: pb.TensorMetadata, kind: DataType) -> int:
    """Return the bytes of a tensor in the block: those of its shape, or of its TensorProto."""
    if kind in _NOT_IN_MEMORY:
        return max(metadata.tensor_size_bytes, 0)
    sizes = [each.size for each in metadata.tensor_shape.dim]
    if min(sizes, default=0) < 0:
        raise DataLossError(f"A tensor of shape {sizes} in a snapshot")
    count = 1
    for size in sizes:
        count *= size
    return count * kind.numpy.itemsize


def _stored_tensor(data: bytes, metadata: pb.TensorMetadata, kind: DataType) -> TensorValue:
    if kind not in _NOT_IN_MEMORY:
        shape = [each.size for each in metadata.tensor_shape.dim]
        return np.frombuffer(data, kind.numpy).reshape(shape)
    try:
        return _tensor(pb.TensorProto.FromString(data))
    except DecodeError:
        raise InternalError("Could not parse TensorProto") from None


class SnapshotRecordFile:
    """Writes elements to one file of version 1; not thread-safe.

    The constructor creates the file and its folder. Raises the OpError of `file_error` if data
    can't be written; data that can't be written is noticed in `close` at the latest.
    """

    def __init__(
        self, path: str, compression: str, types: Sequence[DataType], files: FileGate
    ) -> None:
        files.check_write(path)
        self._path, self._types = path, types
        self._as_blocks = compression == "SNAPPY"
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._raw = open(path, "wb")  # noqa: SIM115 # closed by `close`
        except OSError as error:
            raise file_error(error, path) from None
        self._file: IO[bytes] = self._raw
        if compression == "GZIP":
            self._file = gzip.GzipFile(  # type: ignore[assignment] # writes bytes
                filename="", mode="wb", fileobj=self._raw, mtime=0
            )
        # for the writer of a pass that is given up
        self._closing = weakref.finalize(self, _close, self._file, self._raw)

    def write(self, element: Element) -> None:
        """Append an element."""
        pairs = list(zip(element, self._types, strict=True))
        if self._as_blocks:
            records = _as_block(pairs)
        else:
            protos = [_to_proto(value, kind) for value, kind in pairs]
            records = [pb.SnapshotRecord(tensor=protos).SerializeToString(deterministic=True)]
        try:
            for record in records:
                self._file.write(_LENGTH.pack(len(record)) + record)
        except OSError as error:
            raise self._error(error) from None

    def flushed_bytes(self) -> int:
        """Return the size of the file after everything written so far has reached it."""
        try:
            self._file.flush()
            self._raw.flush()
            return os.fstat(self._raw.fileno()).st_size
        except OSError as error:
            raise self._error(error) from None

    def close(self) -> None:
        """Close the file."""
        try:
            self._closing()
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> OpError:
        return file_error(error, self._path)


def _close(*files: IO[bytes]) -> None:
    with contextlib.ExitStack() as stack:
        for file in reversed(files):
            stack.callback(file.close)


def _as_block(pairs: Sequence[tuple[TensorValue, DataType]]) -> list[bytes]:
    metadata = pb.SnapshotTensorMetadata()
    parts = []
    for value, kind in pairs:
        if kind in _NOT_IN_MEMORY:
            part = _to_proto(value, kind).SerializeToString(deterministic=True)
        else:
            part = np.asarray(value, kind.numpy).tobytes()
        shape = np.shape(value) if isinstance(value, np.ndarray) else ()
        metadata.tensor_metadata.add(
            tensor_shape=shape_to_proto(shape), tensor_size_bytes=len(part)
        )
        parts.append(part)
    return [metadata.SerializeToString(deterministic=True), compress(b"".join(parts))]


def _to_proto(value: TensorValue, kind: DataType) -> pb.TensorProto:
    if kind is DataType.VARIANT:
        return variants_to_proto(value)
    return tensor_to_proto(np.asarray(value), kind)
