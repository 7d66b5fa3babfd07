"""Sorted string tables: the key-value file format of a checkpoint's index.

    file   = block … metaindex block, index block, footer (48 bytes)
    block  = entry … restart offsets u32 …, their count u32 | type u8 | masked crc32c u32
             (type 1: the bytes before it are compressed with snappy)
    entry  = varint shared, varint unshared, varint value length, rest of the key, value
    footer = varint offset and size of metaindex and index, zeros up to 40 bytes, magic u64

The key of an entry begins with the first `shared` bytes of the previous entry's key. At the offset
of a restart, `shared` is 0, so reading can start there. The index block maps the last key of each
block to the block's offset and size.

TF: tensorflow/core/lib/io/table_format.txt, table.cc, block.cc, table_builder.cc
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from runtime.foundation.errors import DataLossError, OutOfRangeError
from runtime.framework.io.masked_crc32c import crc32c, mask, unmask
from runtime.framework.io.snappy import decompress
from runtime.framework.io.varint import decode_varint, encode_varint

MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
BLOCK_BYTES = 1 << 18  # a block is closed when it has reached this size
RESTART_INTERVAL = 16  # number of entries from one restart to the next
_FOOTER_BYTES = 48
_TRAILER_BYTES = 5  # the size of the compression type and the checksum
_UNCOMPRESSED, _SNAPPY = 0, 1
_LONGEST_BLOCK = 1 << 30  # the largest size of a decompressed block, in bytes


def read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Return an iterator over the (key, value) pairs of all entries, in the order of the file.

    The call itself reads the footer and the index; the iteration reads each block when it reaches
    that block. Raises DataLossError if a checksum or the structure is wrong, OutOfRangeError if the
    file ends too early. TF: table.cc (Table::Open)
    """
    if len(data) < _FOOTER_BYTES:
        raise DataLossError("file is too short to be an sstable")
    footer = data[-_FOOTER_BYTES:]
    if not footer.endswith(MAGIC):
        raise DataLossError("not an sstable (bad magic number)")
    # the handle of the metaindex, which is not used, is skipped
    _, _, position = _block_handle(footer, 0)
    offset, size, _ = _block_handle(footer, position)
    return _table_entries(data, _block(data, offset, size))


def _table_entries(data: bytes, index: bytes) -> Iterator[tuple[bytes, bytes]]:
    for _, handle in _block_entries(index):
        offset, size, _ = _block_handle(handle, 0)
        yield from _block_entries(_block(data, offset, size))


def _block_handle(data: bytes, position: int) -> tuple[int, int, int]:
    offset, position = decode_varint(data, position)
    size, position = decode_varint(data, position)
    return offset, size, position


def _block(data: bytes, offset: int, size: int) -> bytes:
    end = offset + size
    if end + _TRAILER_BYTES > len(data):
        raise OutOfRangeError("Read less bytes than requested")
    (stored,) = struct.unpack_from("<I", data, end + 1)
    if unmask(stored) != crc32c(data[offset : end + 1]):
        raise DataLossError("block checksum mismatch")
    compression = data[end]
    if compression == _SNAPPY:
        return decompress(data[offset:end], _LONGEST_BLOCK)
    if compression != _UNCOMPRESSED:
        raise DataLossError("bad block type")
    return data[offset:end]


def _block_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise DataLossError("bad block contents")
    (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise DataLossError("bad block contents")
    position, key = 0, b""
    while position < end:
        shared, position = decode_varint(block, position)
        unshared, position = decode_varint(block, position)
        value_bytes, position = decode_varint(block, position)
        value_at = position + unshared
        if shared > len(key) or value_at + value_bytes > end:
            raise DataLossError("bad entry in block")
        key = key[:shared] + block[position:value_at]
        position = value_at + value_bytes
        yield key, block[value_at:position]


def write_table(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the contents of a table with `entries`, whose keys must be in ascending order."""
    file = bytearray()
    index = _BlockBuilder(restart_interval=1)
    block = _BlockBuilder(RESTART_INTERVAL)
    for key, value in entries:
        block.add(key, value)
        if block.size >= BLOCK_BYTES:
            index.add(block.last_key, _append_block(file, block))
            block = _BlockBuilder(RESTART_INTERVAL)
    # An index key must be at least the last key of its block. TensorFlow uses that key itself,
    # except for the last block, for which it uses a shorter key.
    if block.size:
        index.add(_short_successor(block.last_key), _append_block(file, block))
    metaindex_handle = _append_block(file, _BlockBuilder(RESTART_INTERVAL))
    index_handle = _append_block(file, index)
    handles = metaindex_handle + index_handle
    return bytes(file + handles.ljust(_FOOTER_BYTES - len(MAGIC), b"\0") + MAGIC)


def _append_block(file: bytearray, block: _BlockBuilder) -> bytes:
    """Append the block to the file; return its handle, which is the encoded offset and size."""
    contents = block.finish()
    handle = encode_varint(len(file)) + encode_varint(len(contents))
    framed = contents + bytes([_UNCOMPRESSED])
    file += framed + struct.pack("<I", mask(crc32c(framed)))
    return handle


def _short_successor(key: bytes) -> bytes:
    """Return a short key that is at least `key`.

    The key ends with the first byte of `key` that is below 255, increased by one.
    """
    for position, byte in enumerate(key):
        if byte != 0xFF:
            return key[:position] + bytes([byte + 1])
    return key


class _BlockBuilder:
    """Builds one block from entries, which must be added in ascending order of their keys."""

    def __init__(self, restart_interval: int) -> None:
        self._interval = restart_interval
        self._body = bytearray()
        self._restarts = [0]
        self._count = 0
        self.last_key = b""

    @property
    def size(self) -> int:
        """The size in bytes of the block if it were finished now; 0 if it has no entry."""
        return len(self._body) + 4 * (len(self._restarts) + 1) if self._count else 0

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count and self._count % self._interval == 0:
            self._restarts.append(len(self._body))
        elif self._count:
            shared = _common_prefix(self.last_key, key)
        self._body += encode_varint(shared) + encode_varint(len(key) - shared)
        self._body += encode_varint(len(value)) + key[shared:] + value
        self.last_key = key
        self._count += 1

    def finish(self) -> bytes:
        restarts = self._restarts
        return bytes(self._body) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def _common_prefix(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    for position in range(length):
        if one[position] != other[position]:
            return position
    return length
