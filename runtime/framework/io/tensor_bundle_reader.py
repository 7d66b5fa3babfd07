"""Read tensor bundles, which are checkpoints in the V2 format.

Guarantees: before memory is allocated for the bytes of an entry, the size of the entry is checked
against the shape of the tensor and against the size of the file. Every value that is returned has
passed its checksum. Files are read, never mapped: arrays own their memory, so the files may change
later, and a file that becomes shorter while it is read raises OutOfRangeError. (The access to a
mapping that has lost its pages would end the process; processes that share tensors therefore map
a copy, see `shared_tensors`.) A reader is not thread-safe.

TF: tensorflow/core/util/tensor_bundle/tensor_bundle.cc (BundleReader)
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator
from typing import Self, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message

import protos as pb
from runtime.foundation.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    UnimplementedError,
)
from runtime.foundation.native_calls import LONG_CALL_BYTES, native_call, pieces
from runtime.framework.allocation import check_allocation
from runtime.framework.attr_value import raw_bytes, text
from runtime.framework.dtypes import DataType, from_number
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.large_array import large_array
from runtime.framework.io.masked_crc32c import crc32c, unmask
from runtime.framework.io.ordered_code import is_slice_key, slice_key
from runtime.framework.io.sstable import read_table
from runtime.framework.io.tensor_bundle import (
    HEADER_KEY,
    VERSION,
    decode_strings,
    decode_variants,
    index_path,
    shard_path,
)
from runtime.framework.io.tensor_slice import TensorSlice
from runtime.framework.op_kernel import FileGate
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_codec import shape_from_proto

_WITHOUT_VALUE_ON_DISK = (DataType.RESOURCE, DataType.INVALID)
M = TypeVar("M", bound=Message)
_COMPARED_BYTES = 1 << 20  # bytes read at a time when a stored value is compared with an array


@dataclasses.dataclass(frozen=True, slots=True)
class BundleEntry:
    """The position of a tensor, or of one slice of a tensor, in the data files.

    `slices` lists the slices of a partitioned tensor, each of which has an entry of its own. It is
    empty if the tensor is not partitioned.
    """

    dtype: DataType
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    slices: tuple[TensorSlice, ...]


class TensorBundleReader:
    """Reads the tensors of a bundle by name; a context manager that closes the files at exit."""

    def __init__(self, prefix: str, files: FileGate) -> None:
        """Read the index of the bundle `prefix`; `files` is checked before any file is opened.

        Raises NotFoundError if there is no index, DataLossError if it is corrupt,
        InvalidArgumentError if the version of the format is too new, UnimplementedError if the data
        is big-endian.
        """
        self.prefix = prefix
        self._files = files
        self._shards: dict[int, int] = {}  # shard index → descriptor of the open file
        self._entries: dict[bytes, BundleEntry] = {}  # the entries that have been parsed so far
        self._table = self._read_index()
        if HEADER_KEY not in self._table:
            raise DataLossError(self._unreadable("there is no header entry"))
        header = self._parse(pb.BundleHeaderProto(), self._table[HEADER_KEY])
        _check_header(header)
        self.num_shards = header.num_shards

    def _read_index(self) -> dict[bytes, bytes]:
        path = index_path(self.prefix)
        self._files.check_read(path)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise file_error(error, path) from None
        entries = read_table(data)
        try:
            return dict(entries)
        except DataLossError as error:
            raise DataLossError(self._unreadable(error.message)) from None

    def _unreadable(self, reason: str) -> str:
        return (
            f"Unable to read file ({index_path(self.prefix)}). Perhaps the file is corrupt or was "
            "produced by a newer version of TensorFlow with format changes "
            f"(failed to seek to header entry): {reason}"
        )

    def _parse(self, message: M, data: bytes) -> M:
        try:
            message.ParseFromString(data)
        except DecodeError:
            raise DataLossError(self._unreadable("an entry does not parse")) from None
        return message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; arrays that were read remain valid."""
        while self._shards:
            os.close(self._shards.popitem()[1])

    @property
    def names(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(
            text(key) for key in self._table if key != HEADER_KEY and not is_slice_key(key)
        )

    def __contains__(self, name: str) -> bool:
        return bool(name) and raw_bytes(name) in self._table

    def entry_protos(self) -> Iterator[tuple[bytes, pb.BundleEntryProto]]:
        """Yield (key, entry) of every tensor and slice in the index; the header is left out."""
        for key, data in self._table.items():
            if key != HEADER_KEY:
                yield key, self._parse(pb.BundleEntryProto(), data)

    def entry(self, name: str) -> BundleEntry:
        """Return the entry of a tensor.

        Raises NotFoundError, with TensorFlow's text, if there is none.
        """
        return self._entry(raw_bytes(name), name)

    def _entry(self, key: bytes, name: str) -> BundleEntry:
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = self._parse_entry(key, name)
        return entry

    def _parse_entry(self, key: bytes, name: str) -> BundleEntry:
        if key == HEADER_KEY or key not in self._table:
            raise NotFoundError(f"Key {name} not found in checkpoint")
        proto = self._parse(pb.BundleEntryProto(), self._table[key])
        try:
            dtype, _ = from_number(proto.dtype)
            slices = tuple(TensorSlice.from_proto(each) for each in proto.slices)
        except OpError as error:
            raise DataLossError(self._unreadable(f"entry {name}: {error.message}")) from None
        shape = shape_from_proto(proto.shape)
        bad_shape = shape is None or min(shape, default=0) < 0
        if bad_shape or proto.offset < 0 or proto.size < 0 or proto.shard_id < 0:
            raise DataLossError(self._unreadable(f"entry {name} has a negative size or offset"))
        return BundleEntry(
            dtype,
            shape or (),
            proto.shard_id,
            proto.offset,
            proto.size,
            unmask(proto.crc32c),
            slices,
        )

    def read(self, name: str) -> np.ndarray:
        """Return the whole value of a tensor; assemble it from its slices if it is partitioned.

        Raises NotFoundError if the name is unknown or a shard is missing, OutOfRangeError if a
        shard is truncated, DataLossError if a checksum is wrong.
        """
        entry = self.entry(name)
        if entry.slices:
            return self._assemble(name, entry, TensorSlice.whole(len(entry.shape)))
        return self._value(entry)

    def read_slice(self, name: str, part: TensorSlice) -> np.ndarray:
        """Return the slice `part` of a tensor, no matter how the saved tensor was partitioned.

        Raises InternalError if `part` is not inside the tensor, and the errors of `read`.
        """
        entry = self.entry(name)
        bounds = part.bounds(entry.shape)
        if entry.slices:
            return self._assemble(name, entry, part)
        value = self._value(entry)
        return value if part.is_full(entry.shape) else value[bounds].copy()

    def is_stored_as(self, entry: BundleEntry, value: np.ndarray) -> bool:
        """Return whether the stored bytes of `entry` equal the bytes of `value`.

        The file is read in pieces of _COMPARED_BYTES.
        """
        expected = value.reshape(-1).view(np.uint8)
        if entry.size != expected.nbytes:
            return False
        descriptor = self.open_shard(entry)
        for start in range(0, entry.size, _COMPARED_BYTES):
            wanted = min(_COMPARED_BYTES, entry.size - start)
            try:
                stored = os.pread(descriptor, wanted, entry.offset + start)
            except OSError as error:
                raise file_error(error, self._shard_path(entry)) from None
            if not np.array_equal(np.frombuffer(stored, np.uint8), expected[start:][:wanted]):
                return False
        return True

    def _assemble(self, name: str, entry: BundleEntry, part: TensorSlice) -> np.ndarray:
        target_bounds = part.bounds(entry.shape)
        shape = part.shape_in(entry.shape)
        check_allocation(shape, entry.dtype.numpy)
        result = np.empty(shape, entry.dtype.numpy)
        filled = np.zeros(shape, np.bool_)
        for stored in entry.slices:
            overlap = stored.overlap(target_bounds, entry.shape)
            if overlap is not None:
                target, source = overlap
                result[target] = self._slice_value(name, entry, stored)[source]
                filled[target] = True
        if not filled.all():
            raise InvalidArgumentError(
                f"Does not have sufficient slices for partitioned tensor {name} to restore in "
                f"slice_spec: {part}"
            )
        return result

    def _slice_value(self, name: str, whole: BundleEntry, part: TensorSlice) -> np.ndarray:
        entry = self._entry(slice_key(raw_bytes(name), part), f"{name} slice {part}")
        if entry.dtype != whole.dtype or entry.shape != part.shape_in(whole.shape):
            raise DataLossError(
                self._unreadable(
                    f"slice {part} of {name} is {entry.dtype.tf_name}{shape_text(entry.shape)}"
                )
            )
        return self._value(entry)

    def _value(self, entry: BundleEntry) -> np.ndarray:
        if entry.dtype in _WITHOUT_VALUE_ON_DISK:
            raise UnimplementedError(
                f"A tensor of type {entry.dtype.tf_name} can't be read from a checkpoint"
            )
        check_allocation(entry.shape, entry.dtype.numpy)
        if entry.dtype is DataType.STRING:
            return self._strings(entry)
        if entry.dtype is DataType.VARIANT:
            return self._variants(entry)
        return self._numbers(entry)

    def is_of_numbers(self, entry: BundleEntry) -> bool:
        """Return whether the entry is stored as the bytes of an array, and has its size."""
        if entry.dtype in _WITHOUT_VALUE_ON_DISK or entry.dtype.numpy.hasobject:
            return False
        return entry.size == math.prod(entry.shape) * entry.dtype.numpy.itemsize

    def _numbers(self, entry: BundleEntry) -> np.ndarray:
        dtype = entry.dtype.numpy
        if entry.size != math.prod(entry.shape) * dtype.itemsize:
            raise DataLossError(
                f"Invalid size in bundle entry: stored size {entry.size}; "
                f"expected size {math.prod(entry.shape) * dtype.itemsize}"
            )
        return self.checked(entry, self._read_bytes(entry))

    def checked(self, entry: BundleEntry, raw: np.ndarray) -> np.ndarray:
        """Return the value whose bytes are `raw`, uint8 `[size]`, as a view.

        Raises DataLossError if their checksum is not that of `entry`.
        """
        self._check(entry, crc32c(raw))
        return raw.view(entry.dtype.numpy).reshape(entry.shape)

    def _strings(self, entry: BundleEntry) -> np.ndarray:
        count = math.prod(entry.shape)
        if count > entry.size:  # the length of each element takes at least one byte
            raise DataLossError(
                f"Invalid size in bundle entry: {entry.size} bytes for {count} strings"
            )
        value = np.empty(count, object)
        if count:
            value[:], checksum = decode_strings(self._read_bytes(entry).tobytes(), count)
            self._check(entry, checksum)
        return value.reshape(entry.shape)

    def _variants(self, entry: BundleEntry) -> np.ndarray:
        """Return an object array of VariantTensorDataProtos, which the restoring kernel decodes."""
        count = math.prod(entry.shape)
        if count > entry.size:  # the length of each element takes at least one byte
            raise DataLossError(
                f"Invalid size in bundle entry: {entry.size} bytes for {count} variants"
            )
        messages, checksum = decode_variants(self._read_bytes(entry).tobytes(), count)
        self._check(entry, checksum)
        value = np.empty(count, object)
        value[:] = [self._parse(pb.VariantTensorDataProto(), message) for message in messages]
        return value.reshape(entry.shape)

    def _check(self, entry: BundleEntry, calculated: int) -> None:
        if calculated != entry.checksum:
            raise DataLossError(
                f"TensorBundle at {self.prefix} shard {entry.shard} ({entry.size} bytes): Checksum "
                f"does not match: stored {entry.checksum} vs. calculated on the restored bytes "
                f"{calculated}"
            )

    def _read_bytes(self, entry: BundleEntry) -> np.ndarray:
        """Read the bytes of an entry, uint8 `[size]`.

        Raises OutOfRangeError if the file is too short.
        """
        if not entry.size:
            return np.empty(0, np.uint8)
        descriptor = self.open_shard(entry)  # before the allocation, because this checks the size
        raw = large_array(entry.size)
        for done, end in pieces(entry.size):
            while done < end:  # a read may return fewer bytes than requested
                try:
                    count = _read(descriptor, raw[done:end], entry.offset + done)
                except OSError as error:
                    raise file_error(error, self._shard_path(entry)) from None
                if not count:  # the file has become shorter
                    raise OutOfRangeError("Read less bytes than requested")
                done += count
        return raw

    def _shard_path(self, entry: BundleEntry) -> str:
        return shard_path(self.prefix, entry.shard, self.num_shards)

    def open_shard(self, entry: BundleEntry) -> int:
        """Return the file descriptor of the entry's shard, which is closed with the reader.

        Raises OutOfRangeError if the file ends before the entry does.
        """
        descriptor = self._shards.get(entry.shard)
        if descriptor is None:
            path = self._shard_path(entry)
            self._files.check_read(path)
            try:
                descriptor = os.open(path, os.O_RDONLY)
            except OSError as error:
                raise file_error(error, path) from None
            self._shards[entry.shard] = descriptor
        if entry.offset + entry.size > os.fstat(descriptor).st_size:
            raise OutOfRangeError("Read less bytes than requested")
        return descriptor


def _read(descriptor: int, buffer: np.ndarray, offset: int) -> int:
    if len(buffer) < LONG_CALL_BYTES:
        return os.preadv(descriptor, [buffer.data], offset)
    return native_call(os.preadv, descriptor, [buffer.data], offset)


def _check_header(header: pb.BundleHeaderProto) -> None:
    if header.endianness != pb.BundleHeaderProto.LITTLE:
        raise UnimplementedError("The checkpoint was written on a big-endian machine; convert it")
    if header.version.min_consumer > VERSION:
        raise InvalidArgumentError(
            f"Checkpoint min consumer version {header.version.min_consumer} above current version "
            f"{VERSION}.  Please upgrade."
        )
    if header.num_shards < 0:
        raise DataLossError(f"A checkpoint can't have {header.num_shards} shards")
