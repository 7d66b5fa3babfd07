"""Merge several bundles into one with several shards, the last action of a sharded save.

Guarantees: the data files are moved, not copied. No file is moved if an index is corrupt or a key
occurs twice.

TF: tensorflow/core/util/tensor_bundle/tensor_bundle.cc (MergeBundles)
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.tensor_bundle import index_path, shard_path
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from runtime.framework.io.tensor_bundle_writer import make_folder, new_index
from runtime.framework.op_kernel import FileGate


def merge_bundles(
    prefixes: Sequence[str], destination: str, files: FileGate, allow_missing: bool = False
) -> None:
    """Merge the bundles `prefixes` into the bundle `destination`.

    A new index is written, the data files are moved, and the old indexes are deleted. If a file
    can't be written or moved, the bundles `prefixes` remain as they were. Raises
    InvalidArgumentError if a tensor that is not partitioned occurs in two bundles, or if a bundle
    is missing. If `allow_missing` is true, only the case that all bundles are missing is an error.
    """
    files.check_write(index_path(destination))
    make_folder(os.path.dirname(destination))
    entries: dict[bytes, pb.BundleEntryProto] = {}
    shards: list[str] = []
    found = []
    for prefix in prefixes:
        files.check_read(index_path(prefix))
        if os.path.exists(index_path(prefix)):
            found.append(prefix)
        elif not allow_missing:
            raise InvalidArgumentError(
                f"allow_missing_files was set to false and {prefix} did not exist."
                f"NOT_FOUND: {prefix} not found"
            )
    if not found:
        raise InvalidArgumentError(
            "At least one prefix checkpoint file must exist, but none existed."
        )
    for prefix in found:
        with TensorBundleReader(prefix, files) as reader:
            _add_entries(entries, reader, len(shards), prefix)
            shards += [shard_path(prefix, i, reader.num_shards) for i in range(reader.num_shards)]
    targets = [shard_path(destination, i, len(shards)) for i in range(len(shards))]
    for path in (*shards, *targets, *map(index_path, found)):
        files.check_write(path)
    with (
        new_index(index_path(destination), entries, len(shards)) as index,
        _moved(shards, targets),
    ):
        index.rename()
    for prefix in found:
        if prefix != destination:
            with contextlib.suppress(OSError):  # its data is gone, so it is no bundle any more
                os.unlink(index_path(prefix))


def _add_entries(
    entries: dict[bytes, pb.BundleEntryProto],
    reader: TensorBundleReader,
    first_shard: int,
    prefix: str,
) -> None:
    for key, entry in reader.entry_protos():
        entry.shard_id += first_shard
        known = entries.setdefault(key, entry)
        if known is entry:
            continue
        if not (known.slices and entry.slices):
            raise InvalidArgumentError(
                f"Duplicate tensor keyed by {key.decode(errors='replace')} encountered, "
                f"when merging prefix: {prefix}"
            )
        if (known.dtype, known.shape) != (entry.dtype, entry.shape):
            raise InvalidArgumentError(
                f"Tensor {key.decode(errors='replace')} is partitioned with another shape or type "
                f"in prefix: {prefix}"
            )
        known.slices.extend(entry.slices)


@contextlib.contextmanager
def _moved(sources: Sequence[str], targets: Sequence[str]) -> Iterator[None]:
    """Rename files, and rename them back if that or the context fails."""
    with contextlib.ExitStack() as moved_back:
        for source, target in zip(sources, targets, strict=True):
            try:
                os.replace(source, target)
            except OSError as error:
                raise file_error(error, target) from None
            moved_back.callback(_move_back, target, source)
        yield
        moved_back.pop_all()


def _move_back(target: str, source: str) -> None:
    with contextlib.suppress(OSError):
        os.replace(target, source)
