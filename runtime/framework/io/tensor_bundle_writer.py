"""Write tensor bundles, which are checkpoints in the V2 format.

Guarantees: the files get their final names only in `finish`. Until then the data is in a temporary
file in the same folder. The data is renamed before the index, so if an index exists, its data is
complete. If the context of a writer is left before `finish` is called, the temporary file is
removed.

TF: tensorflow/core/util/tensor_bundle/tensor_bundle.cc (BundleWriter)
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
    """Writes a bundle of one shard; a context manager.

    If the context is left before `finish` is called, the bundle is discarded.
    """

    def __init__(self, prefix: str, files: FileGate) -> None:
        """Open a temporary file for the data; `files` is checked before any file is created."""
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
        """Write a tensor; raise InvalidArgumentError if `name` is invalid or was used before."""
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
        """Write a slice of a tensor whose other slices are written by other calls or writers.

        A slice that is the whole tensor is written as an unpartitioned tensor. Raises
        InvalidArgumentError if `name` was used for another tensor or the slice was written before;
        InternalError if `part` is not inside `full_shape`.
        """
        if part.is_full(full_shape):
            self.add(name, value, dtype)
            return
        part.bounds(full_shape)  # raises InternalError unless the slice is inside the tensor
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
        """Rename the data file and write the index.

        Raises FailedPreconditionError if the writer is already finished.
        """
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
    """Create `folder` for a bundle if it does not exist; the parent of `folder` must exist."""
    try:
        if folder:
            os.mkdir(folder)
    except FileExistsError:
        pass
    except OSError as error:
        raise file_error(error, folder) from None


def write_index(path: str, entries: dict[bytes, pb.BundleEntryProto], num_shards: int) -> None:
    """Write the index of a bundle whose data files exist.

    The index is written to a temporary file, which is then renamed.
    """
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
    """Return (bytes on disk, checksum) of `value`; a contiguous array of numbers is not copied."""
    if dtype is DataType.STRING:
        return encode_strings([as_bytes(item) for item in np.ravel(value).tolist()])
    if dtype is DataType.VARIANT:
        return encode_variants([_serialized_variant(item) for item in _variant_elements(value)])
    if dtype is DataType.RESOURCE:
        raise UnimplementedError(
            f"A tensor of type {dtype.tf_name} can't be written to a checkpoint"
        )
    raw = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return raw.data, crc32c(raw)


def _variant_elements(value: TensorValue) -> list[TensorValue]:
    """Return the elements of a variant tensor; a tensor of rank 0 is itself the only element."""
    return np.ravel(value).tolist() if isinstance(value, np.ndarray) else [value]


def _serialized_variant(item: TensorValue) -> bytes:
    if not isinstance(item, pb.VariantTensorDataProto):
        raise UnimplementedError(
            f"A variant that holds a {type(item).__name__} can't be written to a checkpoint"
        )
    return item.SerializeToString(deterministic=True)
