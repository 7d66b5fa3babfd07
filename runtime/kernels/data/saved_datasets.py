"""Datasets that write elements to files, in one or several shards, or read saved elements.

The files have TensorFlow's layout.

TF: tensorflow/core/kernels/data/experimental/{save_dataset,load_dataset}_op.cc
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.data.captured_function import CapturedFunction
from runtime.framework.data.dataset import (
    UNKNOWN,
    Dataset,
    DatasetIterator,
    Element,
    State,
    UnaryDataset,
    UnaryIterator,
    WindowElements,
    as_dataset,
    scalar_argument,
    watched,
)
from runtime.framework.dtypes import DataType, Types
from runtime.framework.io.snapshot_files import (
    SnapshotWriter,
    check_compression,
    check_version,
    read_elements,
    read_file,
    read_metadata,
    shard_folders,
)
from runtime.framework.op_kernel import FileGate, KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.io.files import file_name


def shard_of(function: CapturedFunction, context: OpKernelContext, element: Element) -> int:
    """Return the shard that `function` returns for `element`.

    Raises InvalidArgumentError if `function` does not return exactly one scalar integer.
    """
    outputs = function(context, *element)
    output = np.asarray(outputs[0]) if len(outputs) == 1 else None
    if output is None or output.ndim or output.dtype.kind not in "iu":
        raise InvalidArgumentError("`shard_func` must return a scalar int64.")
    return int(output)


def save_dataset(
    context: OpKernelContext,
    input_dataset: Dataset,
    path: np.ndarray,
    *captures: TensorValue,
    compression: str,
    shard_func: NameAttrList,
    use_shard_func: bool,
) -> None:
    """SaveDataset: write all elements of a dataset to files."""
    dataset = SaveDataset(
        input_dataset,
        path,
        *captures,
        compression=compression,
        shard_func=shard_func,
        use_shard_func=use_shard_func,
        output_types=(),
        output_shapes=(),
    )
    iterator = watched(context, dataset.iterate(context, "SaveDataset"))
    while iterator.get_next(context) is not None:
        context.cancellation.check()


class SaveDataset(UnaryDataset):
    """SaveDatasetV2: the input's elements, each of which is written to a file when it is read."""

    kind = "SaveV2"

    def __init__(
        self,
        input_dataset: Dataset,
        path: np.ndarray,
        *captures: TensorValue,
        compression: str,
        shard_func: NameAttrList,
        use_shard_func: bool,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        self.path = file_name(path, "`path`")
        self.compression = check_compression(compression)
        self.shard_function = CapturedFunction(shard_func, captures) if use_shard_func else None

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that writes each element of the input and returns it."""
        open_writer = functools.partial(
            SnapshotWriter, self.path, self.compression, self.output_types
        )
        return WritingIterator(self, open_writer, self.shard_function, context, prefix)


class WritingIterator(UnaryIterator):
    """Writes the input's elements to files and returns the elements.

    A run is a pass that writes all elements; it is complete after the last element.
    """

    state = ("input", "count")

    def __init__(
        self,
        dataset: UnaryDataset,
        open_writer: Callable[..., SnapshotWriter],
        shard_function: CapturedFunction | None,
        context: OpKernelContext,
        prefix: str,
    ) -> None:
        super().__init__(dataset, context, prefix)
        self._open_writer = open_writer
        self._shard_function = shard_function
        self._writer: SnapshotWriter | None = None
        self.count = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        """Write and return the next element; at the end, complete the run and return None."""
        if self._writer is None:
            self._writer = self._open_writer(context.step.files)
        is_running = self.input is not None
        element = self.next_input(context)
        if element is None:
            if is_running:
                self._writer.finish(self.count)
            return None
        function = self._shard_function
        shard = 0 if function is None else shard_of(function, context, element)
        self._writer.add(shard, element)
        self.count += 1
        return element

    def save(self) -> State:
        """Return the state from which the run can be continued.

        The state consists of the input's state, the number of elements, the run's id and the number
        of the next file.
        """
        if self._writer is None:
            return {**super().save(), "run": None}
        self._writer.begin_files()
        run = (self._writer.metadata.run_id, self._writer.file_number)
        return {**super().save(), "run": run}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        """Continue the run whose state is `saved`; elements are written to new files."""
        super().restore(context, saved)
        if saved["run"] is not None and self.input is not None:
            run_id, number = saved["run"]
            files = context.step.files
            self._writer = self._open_writer(files, run_id=run_id, file_number=number)


class ShardDataset(Dataset):
    """SnapshotDatasetReader: the elements of one shard, beginning at `start_index`."""

    kind = "SnapshotDatasetReader"

    def __init__(
        self,
        shard_dir: np.ndarray,
        start_index: np.ndarray | int,
        *,
        compression: str,
        version: int,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(output_types, output_shapes)
        self.folder = file_name(shard_dir, "`shard_dir`")
        self.start = int(scalar_argument(start_index, "start_index"))
        self.compression = check_compression(compression)
        check_version(version)
        self.version = version

    def elements(self, files: FileGate) -> Iterator[Element]:
        """Return an iterator over all elements of the shard."""
        return read_elements(self.folder, self.compression, self.output_types, files, self.version)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the elements from `start` on."""
        return _ShardIterator(self)


class ChunkDataset(ShardDataset):
    """SnapshotChunkDataset: the elements of one file."""

    kind = "SnapshotChunk"

    def __init__(
        self,
        chunk_file: np.ndarray,
        *,
        compression: str,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(
            chunk_file,
            0,
            compression=compression,
            version=2,
            output_types=output_types,
            output_shapes=output_shapes,
        )

    def elements(self, files: FileGate) -> Iterator[Element]:
        """Return an iterator over all elements of the file."""
        return read_file(self.folder, self.compression, self.output_types, files)


class _ShardIterator(DatasetIterator):
    state = ("position",)

    def __init__(self, dataset: ShardDataset) -> None:
        self._dataset = dataset
        self._elements: Iterator[Element] | None = None
        self.position = dataset.start

    def get_next(self, context: OpKernelContext) -> Element | None:
        context.cancellation.check()
        if self._elements is None:
            self._elements = self._dataset.elements(context.step.files)
            for _ in range(self.position):
                next(self._elements, None)
        element = next(self._elements, None)
        if element is not None:
            self.position += 1
        return element


def nested_readers(*inputs: TensorValue, output_types: Types, output_shapes: Shapes) -> Dataset:
    """SnapshotNestedDatasetReader: return a dataset whose elements are the input datasets."""
    return WindowElements([(as_dataset(each),) for each in inputs], (DataType.VARIANT,), ((),))


class StoredRun:
    """The files that one finished save of a dataset wrote. Each shard is read as a dataset."""

    def __init__(
        self,
        path: str,
        run_id: str,
        compression: str,
        version: int,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        self._path, self._run_id = path, run_id
        self._options: dict[str, Any] = {
            "compression": compression,
            "version": version,
            "output_types": output_types,
            "output_shapes": output_shapes,
        }

    def iterate(
        self, function: CapturedFunction, context: OpKernelContext, prefix: str
    ) -> DatasetIterator:
        """Return an iterator over the dataset that `function` returns.

        The argument of `function` is a dataset whose elements are the datasets of the shards.
        """
        context.step.files.check_read(os.path.join(self._path, self._run_id))
        shards: list[Element] = []
        for folder in shard_folders(self._path, self._run_id):
            name = np.array(folder.encode("utf-8", "surrogateescape"), object)
            shards.append((ShardDataset(name, 0, **self._options),))
        nested = WindowElements(shards, (DataType.VARIANT,), ((),))
        return function.dataset(context, prefix, nested).iterate(context, prefix)


class LoadDataset(Dataset):
    """LoadDataset: the saved elements, in the order in which `function` reads the shards."""

    kind = "Load"

    def __init__(
        self,
        path: str,
        count: int,
        run: StoredRun,
        function: CapturedFunction,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(output_types, output_shapes)
        self.path = path
        self._count = count
        self._run = run
        self._function = function

    @property
    def cardinality(self) -> int:
        """The number of saved elements, or UNKNOWN if the metadata does not contain it."""
        return self._count if self._count >= 0 else UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the dataset that the function makes of the shards' datasets."""
        return self._run.iterate(self._function, context, prefix)


def load_dataset(
    context: OpKernelContext,
    path: np.ndarray,
    *captures: TensorValue,
    compression: str,
    reader_func: NameAttrList,
    output_types: Types,
    output_shapes: Shapes,
) -> LoadDataset:
    """LoadDataset: read the metadata at `path` and return a dataset of the saved elements.

    Raises NotFoundError if `path` has no metadata of a saved run.
    """
    folder = file_name(path, "`path`")
    metadata = read_metadata(folder, context.step.files)
    if metadata is None:
        raise NotFoundError(f"Could not find metadata file [{folder}]")
    run = StoredRun(
        folder,
        metadata.run_id,
        check_compression(compression),
        metadata.version,
        output_types,
        output_shapes,
    )
    function = CapturedFunction(reader_func, captures)
    count = metadata.num_elements
    return LoadDataset(folder, count, run, function, output_types, output_shapes).made_by(
        context.node, (path, *captures)
    )


KERNELS = (
    KernelDef("LoadDataset", load_dataset),
    KernelDef("SaveDataset", save_dataset),
    KernelDef("SaveDatasetV2", SaveDataset),
    KernelDef("SnapshotChunkDataset", ChunkDataset),
    KernelDef("SnapshotDatasetReader", ShardDataset),
    KernelDef("SnapshotNestedDatasetReader", nested_readers),
)
