"""Tensors of a checkpoint that the processes of one server share.

The first process that restores a checkpoint copies its large tensors into a file of the server;
every process maps that file, so the tensors exist once. The checkpoint itself is not mapped: its
owner may overwrite or truncate it while it is served, and the access to a mapping that has lost its
pages ends the process.

Guarantees: every process compares the checksums of all tensors in the file; all arrays are
read-only and aligned. A checkpoint that has changed, or of which other tensors are restored, has
another file. If there is no memory or disk for the file, nothing is shared.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from runtime.foundation.errors import OutOfRangeError
from runtime.foundation.native_calls import native_call, pieces
from runtime.foundation.shared_files import HEADER_BYTES, shared_files
from runtime.framework.allocation import check_allocation
from runtime.framework.io.tensor_bundle_reader import BundleEntry, TensorBundleReader

_log = logging.getLogger(__name__)

LEAST_BYTES = 1 << 16  # smaller tensors are read into memory
LEAST_FILE_BYTES = 1 << 18
_ALIGNMENT = 64  # of each tensor in the file
Places = dict[str, tuple[BundleEntry, int]]  # the entry and the offset in the file by name


def shared_tensors(
    reader: TensorBundleReader, names: Iterable[str], check: Callable[[], None]
) -> dict[str, np.ndarray]:
    """Return the values of those of `names` that are shared; equal ones are one array.

    `check` is called between tensors, and may raise. Raises the errors of `reader.read`.
    """
    if not shared_files.is_on:
        return {}
    places, size = _places(reader, names)
    if size < LEAST_FILE_BYTES:
        return {}

    def fill(descriptor: int, _: Path) -> None:
        _fill(reader, places, descriptor, check)

    try:
        mapping = shared_files.open(_key(reader, places), fill, check).mapped()
    except OSError as error:
        _log.warning("The weights of %s are not shared: %s", reader.prefix, error.strerror)
        return {}
    return _values(reader, places, mapping, check)


def _places(reader: TensorBundleReader, names: Iterable[str]) -> tuple[Places, int]:
    """Return where tensors are in the file, and its size.

    Tensors of one checksum have one place: exporters store a variable under several names.
    """
    places: Places = {}
    offsets: dict[tuple[object, ...], int] = {}
    size = HEADER_BYTES
    for name in names:
        entry = reader.entry(name)
        if entry.slices or entry.size < LEAST_BYTES or not reader.is_of_numbers(entry):
            continue
        check_allocation(entry.shape, entry.dtype.numpy)
        kind = (entry.dtype, entry.shape, entry.checksum)
        if kind not in offsets:
            offsets[kind] = -(-size // _ALIGNMENT) * _ALIGNMENT
            size = offsets[kind] + entry.size
        places[name] = (entry, offsets[kind])
    return places, size


def _key(reader: TensorBundleReader, places: Places) -> str:
    """Return a name for the file, which depends on the shards and all that is read of them."""
    digest = hashlib.sha256()
    for shard in {entry.shard: entry for entry, _ in places.values()}.values():
        status = os.fstat(reader.open_shard(shard))
        found = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        digest.update(repr(found).encode())
    for name, (entry, offset) in places.items():
        digest.update(repr((name, entry, offset)).encode())
    return f"tensors-{digest.hexdigest()}"


def _fill(
    reader: TensorBundleReader, places: Places, descriptor: int, check: Callable[[], None]
) -> None:
    """Copy the tensors to their places.

    Raises OutOfRangeError if a shard ends before a tensor does.
    """
    filled = 0
    for entry, offset in places.values():
        if offset < filled:  # a tensor of the same checksum is there
            continue
        check()
        shard = reader.open_shard(entry)
        os.lseek(descriptor, offset, os.SEEK_SET)
        for done, end in pieces(entry.size):
            while done < end:  # fewer bytes may be copied than requested
                count = native_call(os.sendfile, descriptor, shard, entry.offset + done, end - done)
                if not count:  # the shard has become shorter
                    raise OutOfRangeError("Read less bytes than requested")
                done += count
        filled = offset + entry.size


def _values(
    reader: TensorBundleReader, places: Places, mapping: mmap.mmap, check: Callable[[], None]
) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    at: dict[int, np.ndarray] = {}
    for name, (entry, offset) in places.items():
        check()
        if offset not in at:
            raw = np.frombuffer(mapping, np.uint8, entry.size, offset)
            at[offset] = found[name] = reader.checked(entry, raw)
        elif reader.is_stored_as(entry, at[offset]):  # equal checksums only make that likely
            found[name] = at[offset]
    return found
