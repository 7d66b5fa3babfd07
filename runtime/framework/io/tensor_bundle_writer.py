"""Writes tensor bundles, and merges the bundles of a sharded save.

Guarantees: the files appear under their names only when `finish` succeeds (they are written
beside and renamed, the data first, so an index that is there is complete); a writer that is left
without `finish` leaves nothing behind.

TF: tensorflow/core/util/tensor_bundle/tensor_bundle.cc (BundleWriter, MergeBundles)
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import Self

import numpy as np
from google.protobuf.message import Message

import protos as pb
from runtime.foundation.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.masked_crc32c import crc32c, mask
from runtime.framework.io.ordered_code import is_slice_key, slice_key
from runtime.framework.io.sstable import write_table
from runtime.framework.io.tensor_bundle import (
    HEADER_KEY,
    VERSION,
    encode_strings,
    encode_variants,
    index_path,
    shard_path,
)
from runtime.framework.io.tensor_slice import TensorSlice
from runtime.framework.op_kernel import FileGate
from runtime.framework.tensor_codec import as_bytes, shape_to_proto
from runtime.framework.tensor_value import TensorValue


class TensorBundleWriter:
    """A bundle of one shard. A context manager: leaving it unfinished drops what was written."""

    def __init__(self, prefix: str, files: FileGate) -> None:
        """Begin `<prefix>.data-00000-of-00001`; `files` is asked before a file is made."""
        self._index_path = index_path(prefix)
        self._data_path = shard_path(prefix, 0, 1)
        for path in (self._index_path, self._data_path):
            files.check_write(path)
        self._entries: dict[bytes, pb.BundleEntryProto] = {}
        self._offset = 0
        self._temporary = f"{self._data_path}.tempstate{uuid.uuid4().hex}"
        make_folder(os.path.dirname(prefix))
        try:
            self._file = open(self._temporary, "wb")  # noqa: SIM115 - closed by finish or __exit__
        except OSError as error:
            raise file_error(error, self._temporary) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._file.closed:
            self._file.close()
            os.unlink(self._temporary)

    def add(self, name: str, value: np.ndarray, dtype: DataType) -> None:
        """Write a tensor; InvalidArgumentError when the name is taken or can't be one."""
        if not name or is_slice_key(raw_bytes(name)):
            raise InvalidArgumentError(
                f"A tensor in a checkpoint needs a name that does not begin with NUL, got {name!r}"
            )
        self._add(raw_bytes(name), name, value, dtype)

    def add_slice(
        self,
        name: str,
        full_shape: Sequence[int],
        part: TensorSlice,
        value: np.ndarray,
        dtype: DataType,
    ) -> None:
        """Write a part of a tensor whose other parts come in other calls, or bundles.

        A part that is all of the tensor is written as the tensor itself.
        """
        if part.is_full(full_shape):
            self.add(name, value, dtype)
            return
        part.bounds(full_shape)  # InternalError unless it lies in the tensor
        whole = self._entries.get(raw_bytes(name))
        if whole is None:
            whole = pb.BundleEntryProto(dtype=int(dtype), shape=shape_to_proto(full_shape))  # type: ignore[arg-type] # an IntEnum of the same numbers
            self._entries[raw_bytes(name)] = whole
        elif not whole.slices or (whole.dtype, whole.shape) != (
            int(dtype),
            shape_to_proto(full_shape),
        ):
            raise InvalidArgumentError(f"Adding duplicate key: {name}")
        self._add(slice_key(raw_bytes(name), part), f"{name} slice {part}", value, dtype)
        whole.slices.append(part.to_proto())

    def _add(self, key: bytes, name: str, value: np.ndarray, dtype: DataType) -> None:
        if key in self._entries:
            raise InvalidArgumentError(f"Adding duplicate key: {name}")
        data, checksum = _encode(value, dtype)
        try:
            self._file.write(data)
        except OSError as error:
            raise file_error(error, self._data_path) from None
        size = len(data)
        self._entries[key] = pb.BundleEntryProto(
            dtype=int(dtype),  # type: ignore[arg-type] # an IntEnum of the same numbers
            shape=shape_to_proto(np.shape(value)),
            offset=self._offset,
            size=size,
            crc32c=mask(checksum),
        )
        self._offset += size

    def finish(self) -> None:
        """Put the data and the index in place; FailedPreconditionError when done already."""
        if self._file.closed:
            raise FailedPreconditionError(f"The bundle {self._data_path} is finished already")
        try:
            self._file.flush()
            os.replace(self._temporary, self._data_path)
        except OSError as error:
            raise file_error(error, self._data_path) from None
        self._file.close()
        write_index(self._index_path, self._entries, num_shards=1)


def make_folder(folder: str) -> None:
    """Make the folder of a bundle unless it is there; its parent has to be."""
    try:
        if folder:
            os.mkdir(folder)
    except FileExistsError:
        pass
    except OSError as error:
        raise file_error(error, folder) from None


def write_index(path: str, entries: dict[bytes, pb.BundleEntryProto], num_shards: int) -> None:
    """Write the index of a bundle whose data shards are in place, in one rename."""
    header = pb.BundleHeaderProto(num_shards=num_shards, version=pb.VersionDef(producer=VERSION))
    messages: dict[bytes, Message] = {HEADER_KEY: header, **entries}
    table = [(key, messages[key].SerializeToString(deterministic=True)) for key in sorted(messages)]
    temporary = f"{path}.tempstate{uuid.uuid4().hex}"
    try:
        with open(temporary, "wb") as file:
            file.write(write_table(table))
        os.replace(temporary, path)
    except OSError as error:
        raise file_error(error, path) from None


def _encode(value: np.ndarray, dtype: DataType) -> tuple[bytes | memoryview, int]:
    """(bytes on disk, checksum); numbers without a copy where they are contiguous."""
    if dtype is DataType.STRING:
        return encode_strings([as_bytes(item) for item in np.ravel(value).tolist()])
    if dtype is DataType.VARIANT:
        return encode_variants([_message(item) for item in _items(value)])
    if dtype is DataType.RESOURCE:
        raise UnimplementedError(
            f"A tensor of type {dtype.tf_name} can't be written to a checkpoint"
        )
    raw = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return raw.data, crc32c(raw)


def _items(value: TensorValue) -> list[TensorValue]:
    """The elements of a variant tensor, which is a bare object at rank 0."""
    return np.ravel(value).tolist() if isinstance(value, np.ndarray) else [value]


def _message(item: TensorValue) -> bytes:
    if not isinstance(item, pb.VariantTensorDataProto):
        raise UnimplementedError(
            f"A variant that holds a {type(item).__name__} can't be written to a checkpoint"
        )
    return item.SerializeToString(deterministic=True)
