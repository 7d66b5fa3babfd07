"""Runs of SnapshotDataset: passes over a pipeline whose elements are stored in files.

A run is a folder of files of version 1 (`runtime.framework.io.snapshot_record_files`), beside the
metadata of the pipeline's last run:

    <folder>/snapshot.metadata
    <folder>/<run>/00000000.snapshot

TF: tensorflow/core/kernels/data/experimental/snapshot_dataset_op.cc (SnapshotDatasetOp)
"""

from __future__ import annotations

import dataclasses
import math
import os
import secrets
import time
from collections.abc import Iterator, Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import InternalError, NotFoundError, OpError
from runtime.framework.data.dataset import (
    DatasetIterator,
    Element,
    State,
    UnaryDataset,
    UnaryIterator,
)
from runtime.framework.dtypes import Types
from runtime.framework.io.snapshot_files import read_file, read_metadata, write_metadata
from runtime.framework.io.snapshot_record_files import SnapshotRecordFile
from runtime.framework.op_kernel import FileGate, OpKernelContext

_VERSION = 1
_STRING_BYTES = 24  # of a string in a tensor of TensorFlow, beside its characters


@dataclasses.dataclass(frozen=True, slots=True)
class RunStore:
    """Where the runs of one pipeline are stored, and how.

    `run_id` is empty if each run has an id of its own. `shard_bytes` limits a file; a negative
    number is no limit. The prefixes are put before the paths of files, not of the metadata.
    """

    folder: str
    run_id: str
    graph_hash: str
    compression: str
    types: Types
    reader_prefix: str
    writer_prefix: str
    shard_bytes: int

    def files(self, metadata: pb.SnapshotMetadataRecord, gate: FileGate) -> list[str]:
        """Return the paths of the files of the run that `metadata` describes.

        Raises NotFoundError if there are none, InternalError if its elements have other types.
        """
        run_id = self.run_id or metadata.run_id
        if not run_id:
            raise NotFoundError("Could not find a valid snapshot to read.")
        self._check_types(metadata)
        folder = os.path.join(self.folder, run_id)
        gate.check_read(folder)
        try:
            names = os.listdir(folder)
        except OSError:
            names = []
        if not names:
            raise NotFoundError(f"Could not find any files in dir: {folder}")
        return [_prefixed(self.reader_prefix, os.path.join(folder, name)) for name in names]

    def _check_types(self, metadata: pb.SnapshotMetadataRecord) -> None:
        expected, stored = self.types, metadata.dtype
        if len(stored) != len(expected):
            raise InternalError(
                f"Expected number of dtypes: {len(expected)} but number in snapshot: {len(stored)}"
            )
        for index, (found, declared) in enumerate(zip(stored, expected, strict=True)):
            if int(found) != int(declared):
                raise InternalError(
                    f"Type: {index} doesn't match. Snapshot: {int(found)}; dataset: {int(declared)}"
                )

    def write_metadata(self, run_id: str, gate: FileGate) -> None:
        """Write the metadata of a run that begins."""
        metadata = pb.SnapshotMetadataRecord(
            graph_hash=self.graph_hash,
            run_id=run_id,
            creation_timestamp=int(time.time() * 1e6),  # microseconds
            version=_VERSION,
            dtype=[pb.DataType.Name(each) for each in self.types],
        )
        write_metadata(self.folder, metadata, gate)

    def complete(self, run_id: str, gate: FileGate) -> None:
        """Mark the run as complete, unless another run has begun since."""
        metadata = read_metadata(self.folder, gate)
        if metadata is not None and metadata.run_id == run_id:
            metadata.finalized = True
            write_metadata(self.folder, metadata, gate)

    def new_file(self, run_id: str, number: int, gate: FileGate) -> SnapshotRecordFile:
        """Create the file of a run with this number."""
        folder = _prefixed(self.writer_prefix, os.path.join(self.folder, run_id))
        name = os.path.join(folder, f"{number:08}.snapshot")
        return SnapshotRecordFile(name, self.compression, self.types, gate)


def _prefixed(prefix: str, path: str) -> str:
    return os.path.join(prefix, path.lstrip("/")) if prefix else path


class RunReader(DatasetIterator):
    """The elements of the files `names`, one file after the other."""

    state = ("names", "file", "position")

    def __init__(self, store: RunStore, names: Sequence[str], version: int) -> None:
        self._store = store
        self._version = version
        self._elements: Iterator[Element] | None = None
        self.names = list(names)
        self.file = 0
        self.position = 0  # number of the file's elements returned so far

    def get_next(self, context: OpKernelContext) -> Element | None:
        """Return the next element, or None after the last file."""
        while self.file < len(self.names):
            context.cancellation.check()
            element = next(self._opened(context), None)
            if element is not None:
                self.position += 1
                return element
            self._elements = None
            self.file += 1
            self.position = 0
        return None

    def _opened(self, context: OpKernelContext) -> Iterator[Element]:
        if self._elements is None:
            store = self._store
            self._elements = read_file(
                self.names[self.file],
                store.compression,
                store.types,
                context.step.files,
                self._version,
            )
        return self._elements

    def restore(self, context: OpKernelContext, saved: State) -> None:
        """Continue after the elements that were returned before."""
        super().restore(context, saved)
        for _ in range(self.position):
            next(self._opened(context), None)


class RunWriter(UnaryIterator):
    """Writes the input's elements to files and returns them.

    The run is marked as complete when the last element is returned, because a caller may stop
    there. For that, the input is one element ahead. If an element can't be written, this and all
    later calls raise the OpError, since a run that lacks an element must not become complete.
    """

    state = ("input", "is_begun", "ahead", "run_id", "file_number")

    def __init__(
        self, dataset: UnaryDataset, store: RunStore, context: OpKernelContext, prefix: str
    ) -> None:
        super().__init__(dataset, context, prefix)
        self._store = store
        self._file: SnapshotRecordFile | None = None
        self._file_bytes = 0  # those of the tensors that went to the open file
        self._ratio = 0.0  # of the bytes of tensors to those of their files; 0 if not known
        self.run_id = ""  # empty until the first element is requested
        self.file_number = 0  # of the next file
        self.is_begun = False  # whether `ahead` is the next element, or None at the end
        self.ahead: Element | None = None
        self._refused: OpError | None = None  # set once data could not be written

    def get_next(self, context: OpKernelContext) -> Element | None:
        """Write the element after the next one, and return the next one or None at the end."""
        if self._refused is not None:
            raise self._refused
        if not self.run_id:
            run_id = self._store.run_id or f"{secrets.randbits(64):016x}"
            self._store.write_metadata(run_id, context.step.files)
            self.run_id = run_id
        if not self.is_begun:
            self.ahead = self._written(context)
            self.is_begun = True
        element = self.ahead
        if element is not None:
            self.ahead = self._written(context)
        return element

    def _written(self, context: OpKernelContext) -> Element | None:
        element = self.next_input(context)
        try:
            self._write(element, context.step.files)
        except OpError as error:
            self._refused = error
            raise
        return element

    def _write(self, element: Element | None, gate: FileGate) -> None:
        """Write an element, or complete the run if there is none."""
        file = self._file or self._next_file(gate)
        if element is None:
            self._close()
            self._store.complete(self.run_id, gate)
            return
        self._file_bytes += sum(map(_tensor_bytes, element))
        if self._is_full(file):
            file = self._next_file(gate)
        file.write(element)

    def _is_full(self, file: SnapshotRecordFile) -> bool:
        """Whether the next element belongs to a new file.

        How far files are compressed is measured once, when the first one may be full.
        """
        limit = self._store.shard_bytes
        if limit < 0:
            return False
        if self._ratio:
            return self._file_bytes > self._ratio * limit
        if self._file_bytes <= limit:
            return False
        stored = file.flushed_bytes()
        self._ratio = self._file_bytes / stored if stored else math.inf
        return stored >= limit

    def _next_file(self, gate: FileGate) -> SnapshotRecordFile:
        self._close()
        self._file = self._store.new_file(self.run_id, self.file_number, gate)
        self.file_number += 1
        return self._file

    def _close(self) -> None:
        self._file_bytes = 0
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def save(self) -> State:
        """Return the state from which the run can be continued in a new file."""
        self._close()
        return super().save()


def _tensor_bytes(value: object) -> int:
    """Return the bytes of a tensor as TensorFlow counts them, which variants add nothing to."""
    if not isinstance(value, np.ndarray | np.generic):
        return 0
    if value.dtype != object:
        return value.nbytes
    return sum(_STRING_BYTES + len(each) for each in value.flat if isinstance(each, bytes))
