"""Write tensor bundles, which are checkpoints in the V2 format.

Guarantees: the files get their final names only in `finish`, once both are complete. Until then
they are temporary files in the same folder. The data is renamed before the index, so if an index
exists, its data is complete. If `finish` raises or is not called, a bundle of the same name remains
as it was, and no file of the new one.

TF: tensorflow/core/util/tensor_bundle/tensor_bundle.cc (BundleWriter)
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
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
from runtime.framework.io.new_files import NewFile
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
        self._is_finished = False
        make_folder(os.path.dirname(prefix))
        self._data = NewFile(self._data_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._data.__exit__(*error)

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
        self._data.write(data)
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
        """Write the index, and give both files their names.

        Raises FailedPreconditionError if the writer is already finished.
        """
        if self._is_finished:
            raise FailedPreconditionError(f"The bundle {self._data_path} is finished already")
        self._is_finished = True
        self._data.complete()
        with new_index(self._index_path, self._entries, num_shards=1) as index:
            self._data.rename()
            index.rename()


def make_folder(folder: str) -> None:
    """Create `folder` for a bundle if it does not exist; the parent of `folder` must exist."""
    try:
        if folder:
            os.mkdir(folder)
    except FileExistsError:
        pass
    except OSError as error:
        raise file_error(error, folder) from None


@contextlib.contextmanager
def new_index(
    path: str, entries: dict[bytes, pb.BundleEntryProto], num_shards: int
) -> Iterator[NewFile]:
    """Write the index of a bundle; it must be renamed once the data files are in place."""
    header = pb.BundleHeaderProto(num_shards=num_shards, version=pb.VersionDef(producer=VERSION))
    messages: dict[bytes, Message] = {HEADER_KEY: header, **entries}
    table = [(key, messages[key].SerializeToString(deterministic=True)) for key in sorted(messages)]
    with NewFile(path) as index:
        index.write(write_table(table))
        index.complete()
        yield index


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
