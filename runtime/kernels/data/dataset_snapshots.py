"""SnapshotDatasetV2, which writes its input's elements to files once and reads the files later.

TF: tensorflow/core/kernels/data/experimental/snapshot_dataset_op.cc
"""

from __future__ import annotations

import functools
import os

import numpy as np

import protos as pb
from runtime.foundation.errors import NotFoundError
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
from runtime.framework.dtypes import Types
from runtime.framework.io.snapshot_files import (
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


KERNELS = (KernelDef("SnapshotDatasetV2", SnapshotDataset),)
