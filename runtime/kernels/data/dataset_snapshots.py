"""SnapshotDataset, SnapshotDatasetV2: write the input's elements to files once, later read them.

TF: tensorflow/core/kernels/data/experimental/snapshot_dataset_op.cc
"""

from __future__ import annotations

import functools
import os
import time

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.data.captured_function import CapturedFunction
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    State,
    UnaryDataset,
)
from runtime.framework.data.dataset_graph import DatasetGraphBuilder, graph_hash
from runtime.framework.data.snapshot_runs import RunReader, RunStore, RunWriter
from runtime.framework.dtypes import Types
from runtime.framework.io.snapshot_files import (
    COMPRESSIONS,
    SnapshotWriter,
    check_compression,
    read_metadata,
)
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.data.saved_datasets import StoredRun, WritingIterator
from runtime.kernels.io.files import file_name


class SnapshotDataset(UnaryDataset):
    """SnapshotDatasetV2: the input's elements, read from files if a complete run is stored.

    A run is a pass that writes all elements to files. Runs are stored in one folder per pipeline,
    which is named after the hash of the pipeline's graph.
    """

    kind = "SnapshotV2"

    def __init__(
        self,
        input_dataset: Dataset,
        path: np.ndarray,
        *captures: TensorValue,
        compression: str,
        reader_prefix: str,
        writer_prefix: str,
        hash_valid: bool,
        hash: int,  # the attribute's name
        reader_func: NameAttrList,
        shard_func: NameAttrList,
        Treader_func_args: Types,  # noqa: N803 # the attribute's name
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        name = file_name(path, "`path`")
        self.reader_path, self.writer_path = reader_prefix + name, writer_prefix + name
        self.compression = check_compression(compression)
        self._hash = hash % 2**64 if hash_valid else None
        first = len(Treader_func_args)
        self.reader_function = CapturedFunction(reader_func, captures[:first])
        self.shard_function = CapturedFunction(shard_func, captures[first:])

    def graph_hash(self, context: OpKernelContext) -> int:
        """Return the attribute `hash` if it is valid, otherwise the hash of the input's graph."""
        if self._hash is None:
            self._hash = graph_hash(DatasetGraphBuilder(context).build(self.input))
        return self._hash

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that reads stored elements, or writes elements and returns them.

        The iterator chooses when its first element is requested.
        """
        return _SnapshotIterator(self, prefix)


class _SnapshotIterator(DatasetIterator):
    """Reads the complete run if there is one, otherwise writes a new run."""

    def __init__(self, dataset: SnapshotDataset, prefix: str) -> None:
        self._dataset = dataset
        self._prefix = prefix
        self._inner: DatasetIterator | None = None
        self._writes = False

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self._inner is None:
            metadata = self._metadata(context)
            self._writes = metadata is None or not metadata.finalized
            self._inner = self._opened(context)
        return self._inner.get_next(context)

    def _folder(self, context: OpKernelContext, path: str) -> str:
        return os.path.join(path, str(self._dataset.graph_hash(context)))

    def _metadata(self, context: OpKernelContext) -> pb.SnapshotMetadataRecord | None:
        folder = self._folder(context, self._dataset.reader_path)
        return read_metadata(folder, context.step.files)

    def _opened(self, context: OpKernelContext) -> DatasetIterator:
        dataset = self._dataset
        if self._writes:
            open_writer = functools.partial(
                SnapshotWriter,
                self._folder(context, dataset.writer_path),
                dataset.compression,
                dataset.output_types,
                graph_hash=str(dataset.graph_hash(context)),
            )
            return WritingIterator(
                dataset, open_writer, dataset.shard_function, context, self._prefix
            )
        metadata = self._metadata(context)
        folder = self._folder(context, dataset.reader_path)
        if metadata is None:
            raise NotFoundError(f"Could not find metadata file [{folder}]")
        run = StoredRun(
            folder,
            metadata.run_id,
            dataset.compression,
            metadata.version,
            dataset.output_types,
            dataset.output_shapes,
        )
        return run.iterate(dataset.reader_function, context, self._prefix)

    def save(self) -> State:
        if self._inner is None:
            return {"writes": False, "inner": None}
        return {"writes": self._writes, "inner": self._inner.save()}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        if saved["inner"] is not None:
            self._writes = saved["writes"]
            self._inner = self._opened(context)
            self._inner.restore(context, saved["inner"])


_DEFAULT_SHARD_BYTES = 10 << 30
_MODES = ("auto", "read", "write", "passthrough")


class LegacySnapshotDataset(UnaryDataset):
    """SnapshotDataset: the input's elements, read from files if a complete run is stored.

    Runs are stored in one folder per pipeline, which is named after `snapshot_name` or the hash of
    the pipeline's graph. In mode `auto`, elements are read if a run is complete, written if there
    is none or the last one began more than `pending_snapshot_expiry_seconds` ago, and else passed
    through. Numbers of threads and sizes of buffers have no effect: one file is written after the
    other, and files are read in the order of their names. If `shuffle_on_read`, their order depends
    on `seed` and `seed2`, but is not TensorFlow's, which depends on the file system.
    """

    kind = "Snapshot"

    def __init__(
        self,
        input_dataset: Dataset,
        path: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
        compression: str,
        reader_path_prefix: str,
        writer_path_prefix: str,
        shard_size_bytes: int,
        pending_snapshot_expiry_seconds: int,
        shuffle_on_read: bool,
        seed: int,
        seed2: int,
        mode: str,
        snapshot_name: str,
    ) -> None:
        super().__init__(input_dataset)
        if compression not in COMPRESSIONS:
            raise InvalidArgumentError("compression must be either '', 'GZIP' or 'SNAPPY'.")
        expiry = 86400 if pending_snapshot_expiry_seconds == -1 else pending_snapshot_expiry_seconds
        if expiry < 1:
            raise InvalidArgumentError("pending_snapshot_expiry_seconds must be at least 1 second.")
        if mode not in _MODES:
            raise InvalidArgumentError(
                "mode must be either 'auto', 'read', 'write', or 'passthrough'."
            )
        self.path = file_name(path, "`path`")
        self.compression, self.mode, self.name = compression, mode, snapshot_name
        self._prefixes = (reader_path_prefix, writer_path_prefix)
        self._shard_bytes = _DEFAULT_SHARD_BYTES if shard_size_bytes == -1 else shard_size_bytes
        self._expiry = expiry
        self._shuffle_seed = (seed % 2**64, seed2 % 2**64) if shuffle_on_read else None
        self._hash: str | None = None

    def graph_hash(self, context: OpKernelContext) -> str:
        """Return the hash of the input's graph in hexadecimal."""
        if self._hash is None:
            self._hash = f"{graph_hash(DatasetGraphBuilder(context).build(self.input)):016x}"
        return self._hash

    def store(self, context: OpKernelContext) -> RunStore:
        """Return where the pipeline's runs are stored and how."""
        graph_hash = self.graph_hash(context)
        return RunStore(
            os.path.join(self.path, f"custom-{self.name}" if self.name else graph_hash),
            "custom" if self.name else "",
            graph_hash,
            self.compression,
            self.output_types,
            *self._prefixes,
            self._shard_bytes,
        )

    def task(self, metadata: pb.SnapshotMetadataRecord | None) -> str:
        """Return what an iterator does: `read`, `write` or `passthrough`.

        Raises NotFoundError if the mode is `read` and there is no metadata.
        """
        if self.mode == "read" and metadata is None:
            raise NotFoundError("Metadata file does not exist.")
        if self.mode != "auto":
            return self.mode
        if metadata is None:
            return "write"
        if metadata.finalized:
            return "read"
        age = time.time() - metadata.creation_timestamp / 1e6
        return "passthrough" if age <= self._expiry else "write"

    def ordered(self, names: list[str]) -> list[str]:
        """Return the names of a run's files in the order in which they are read."""
        names = sorted(names)
        if self._shuffle_seed is not None:
            seed = self._shuffle_seed if any(self._shuffle_seed) else None
            np.random.default_rng(seed).shuffle(names)
        return names

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that reads, writes or passes elements through.

        The iterator chooses when its first element is requested.
        """
        return _LegacySnapshotIterator(self, prefix)


class _LegacySnapshotIterator(DatasetIterator):
    def __init__(self, dataset: LegacySnapshotDataset, prefix: str) -> None:
        self._dataset = dataset
        self._prefix = prefix
        self._task = ""
        self._inner: DatasetIterator | None = None

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self._inner is None:
            store = self._dataset.store(context)
            metadata = read_metadata(store.folder, context.step.files)
            self._task = self._dataset.task(metadata)
            self._inner = self._opened(context, store, metadata)
        return self._inner.get_next(context)

    def _opened(
        self, context: OpKernelContext, store: RunStore, metadata: pb.SnapshotMetadataRecord | None
    ) -> DatasetIterator:
        dataset = self._dataset
        if self._task == "passthrough":
            return dataset.input.iterate(context, self._prefix)
        if self._task == "write":
            return RunWriter(dataset, store, context, self._prefix)
        if metadata is None:
            raise NotFoundError("Metadata file does not exist.")
        names = dataset.ordered(store.files(metadata, context.step.files))
        return RunReader(store, names, metadata.version)

    def save(self) -> State:
        if self._inner is None:
            return {"task": "", "inner": None}
        return {"task": self._task, "inner": self._inner.save()}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        if saved["inner"] is not None:
            self._task = saved["task"]
            store = self._dataset.store(context)
            metadata = read_metadata(store.folder, context.step.files)
            self._inner = self._opened(context, store, metadata)
            self._inner.restore(context, saved["inner"])


KERNELS = (
    KernelDef("SnapshotDataset", LegacySnapshotDataset),
    KernelDef("SnapshotDatasetV2", SnapshotDataset),
)
