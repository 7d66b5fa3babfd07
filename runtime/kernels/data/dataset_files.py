"""Datasets of the records of files and of file names; DatasetToTFRecord, which writes a file.

TF: tensorflow/core/kernels/data/{text_line,fixed_length_record,tf_record}_dataset_op.cc,
tensorflow/core/kernels/data/experimental/{matching_files_dataset,to_tf_record}_op.cc
"""

from __future__ import annotations

import abc
import os

import numpy as np

from runtime.foundation.errors import DataLossError, InvalidArgumentError
from runtime.framework.allocation import tensor_limit
from runtime.framework.attr_value import text
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    IndexIterator,
    State,
    as_dataset,
    scalar_argument,
    watched,
)
from runtime.framework.dtypes import DataType
from runtime.framework.io.bounded_reads import read_at_most
from runtime.framework.io.new_files import write_file
from runtime.framework.io.record_files import Records, open_records, text_lines, tf_records
from runtime.framework.io.record_writer import tf_record_bytes
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.string_tensor import items_of, scalar_string, string_tensor
from runtime.kernels.array.boxing import box
from runtime.kernels.io.files import file_name, matching_files

_COMPRESSIONS = ("", "ZLIB", "GZIP")


class FilesDataset(Dataset, abc.ABC):
    """A dataset of the records of several files."""

    def __init__(self, filenames: np.ndarray) -> None:
        super().__init__((DataType.STRING,), (None,))
        if np.ndim(filenames) > 1:
            raise InvalidArgumentError("`filenames` must be a scalar or a vector.")
        self.filenames = [os.fsdecode(name) for name in items_of(filenames)]

    @abc.abstractmethod
    def records(self, number: int) -> Records:
        """Return the records of the file at index `number`.

        The caller must have checked that the step may read the file.
        """

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the records of one file after another."""
        return _FilesIterator(self)


class _FilesIterator(DatasetIterator):
    state = ("file", "position")

    def __init__(self, dataset: FilesDataset) -> None:
        self._dataset = dataset
        self._records: Records | None = None
        self.file = 0
        self.position = 0  # number of the file's records returned so far

    def get_next(self, context: OpKernelContext) -> Element | None:
        while self.file < len(self._dataset.filenames):
            context.cancellation.check()
            record = next(self._opened(context), None)
            if record is not None:
                self.position += 1
                return (string_tensor([record[1]], ()),)
            self._next_file()
        return None

    def _opened(self, context: OpKernelContext) -> Records:
        if self._records is None:
            context.step.files.check_read(self._dataset.filenames[self.file])
            try:
                self._records = self._dataset.records(self.file)
            except Exception:
                self._next_file()  # after an error, a caller may continue with the next file
                raise
        return self._records

    def _next_file(self) -> None:
        self._records = None
        self.file += 1
        self.position = 0

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        if self.position:
            records = self._opened(context)
            for _ in range(self.position):
                next(records, None)


class TextLineDataset(FilesDataset):
    """TextLineDataset: the lines of files, without line ends and without any carriage returns."""

    kind = "TextLine"

    def __init__(
        self, filenames: np.ndarray, compression_type: np.ndarray, buffer_size: np.ndarray
    ) -> None:
        super().__init__(filenames)
        self._compression = _compression(compression_type)

    def records(self, number: int) -> Records:
        """Return the lines of the file at index `number`."""
        lines = text_lines(self.filenames[number], 0, self._compression)
        return ((key, line.replace(b"\r", b"")) for key, line in lines)


def _compression(compression_type: np.ndarray | bytes) -> str:
    name = text(scalar_string(compression_type))
    if name not in _COMPRESSIONS:
        raise InvalidArgumentError("Unsupported compression_type.")
    return name


class TFRecordDataset(FilesDataset):
    """TFRecordDataset, TFRecordDatasetV2: the records of TFRecord files.

    If `byte_offsets` is given, each file is read from its offset on.
    """

    kind = "TFRecord"

    def __init__(
        self,
        filenames: np.ndarray,
        compression_type: np.ndarray,
        buffer_size: np.ndarray,
        byte_offsets: np.ndarray | None = None,
    ) -> None:
        super().__init__(filenames)
        # As in TensorFlow, an unknown compression type means no compression.
        name = text(scalar_string(compression_type))
        self._compression = name if name in _COMPRESSIONS else ""
        self._offsets = None if byte_offsets is None else np.ravel(byte_offsets).tolist()
        if self._offsets and len(self._offsets) != len(self.filenames):
            raise InvalidArgumentError("`byte_offsets` must be of same size as `filenames`")

    def records(self, number: int) -> Records:
        """Return the records of the file at index `number`."""
        records = tf_records(self.filenames[number], self._compression)
        if not self._offsets:
            return records
        return _from_offset(records, self._offsets[number])


def _from_offset(records: Records, offset: int) -> Records:
    """Yield the records from byte `offset` on.

    Raises DataLossError if a record begins after `offset` but none begins at `offset`.
    """
    for key, record in records:
        if int(key) < offset:
            continue
        if int(key) > offset:
            raise DataLossError(f"corrupted record at {offset}")
        yield key, record
        break
    yield from records


class FixedLengthRecordDataset(FilesDataset):
    """FixedLengthRecordDataset, FixedLengthRecordDatasetV2: records of equal length.

    The records are consecutive parts of the bytes between the header and the footer of a file.
    """

    kind = "FixedLengthRecord"

    def __init__(
        self,
        filenames: np.ndarray,
        header_bytes: np.ndarray,
        record_bytes: np.ndarray,
        footer_bytes: np.ndarray,
        buffer_size: np.ndarray,
        compression_type: np.ndarray | bytes = b"",
    ) -> None:
        super().__init__(filenames)
        self._header = scalar_argument(header_bytes, "header_bytes")
        self._record = scalar_argument(record_bytes, "record_bytes")
        self._footer = scalar_argument(footer_bytes, "footer_bytes")
        self._compression = _compression(compression_type)
        if self._header < 0:
            raise InvalidArgumentError("`header_bytes` must be >= 0")
        if self._record <= 0:
            raise InvalidArgumentError("`record_bytes` must be > 0")
        if self._footer < 0:
            raise InvalidArgumentError("`footer_bytes` must be >= 0")
        if scalar_argument(buffer_size, "buffer_size") < 0:
            raise InvalidArgumentError("`buffer_size` must be >= 0 (0 == default)")

    def records(self, number: int) -> Records:
        """Return the records of the file at index `number`.

        Raises InvalidArgumentError if the file is not compressed and the number of bytes between
        its header and footer is not a multiple of the record length.
        """
        path = self.filenames[number]
        with open_records(path, self._compression) as file:
            data = read_at_most(file, tensor_limit())
        stop = len(data) - self._footer
        body = stop - self._header
        if body % self._record and not self._compression:
            raise InvalidArgumentError(
                f"Excluding the header ({self._header} bytes) and footer ({self._footer} bytes), "
                f'input file "{path}" has body length {body} bytes, which is not an exact '
                f"multiple of the record length ({self._record} bytes)."
            )
        starts = range(self._header, stop - self._record + 1, self._record)
        return iter([(str(start), data[start : start + self._record]) for start in starts])


class MatchingFilesDataset(Dataset):
    """MatchingFilesDataset: the names of the files that match each pattern, sorted per pattern."""

    kind = "MatchingFiles"

    def __init__(self, patterns: np.ndarray) -> None:
        super().__init__((DataType.STRING,), ((),))
        if np.ndim(patterns) > 1:
            raise InvalidArgumentError("`patterns` must be a scalar or a vector.")
        self._patterns = np.atleast_1d(np.asarray(patterns, object))

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the names of the files that exist now."""
        names = np.empty(0, object)
        for index in range(len(self._patterns)):
            matching = matching_files(context, self._patterns[index, ...])
            names = np.concatenate([names, matching])
        return IndexIterator(_FileNames(names))


class _FileNames(Dataset):
    kind = "MatchingFiles"

    def __init__(self, names: np.ndarray) -> None:
        super().__init__((DataType.STRING,), ((),))
        self._names = names

    @property
    def cardinality(self) -> int:
        return len(self._names)

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        return (self._names[index, ...],)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        return IndexIterator(self)


def dataset_to_tf_record(
    context: OpKernelContext,
    input_dataset: Dataset,
    filename: np.ndarray,
    compression_type: np.ndarray,
) -> None:
    """DatasetToTFRecord: write the strings of a dataset to the TFRecord file `filename`."""
    path = file_name(filename, "`filename`")
    compression = _compression(compression_type)
    dataset = as_dataset(input_dataset)
    if dataset.output_types != (DataType.STRING,):
        raise InvalidArgumentError(
            "DatasetToTFRecordOp only supports datasets with one component of type string"
        )
    context.step.files.check_write(path)
    records: list[bytes] = []
    iterator = watched(context, dataset.iterate(context, "ToTFRecordOpIterator"), records)
    while (element := iterator.get_next(context)) is not None:
        context.cancellation.check()
        records.append(scalar_string(box(element[0])))
    write_file(path, tf_record_bytes(records, compression))


KERNELS = (
    KernelDef("DatasetToTFRecord", dataset_to_tf_record),
    KernelDef("ExperimentalDatasetToTFRecord", dataset_to_tf_record),
    KernelDef("ExperimentalMatchingFilesDataset", MatchingFilesDataset),
    KernelDef("FixedLengthRecordDataset", FixedLengthRecordDataset),
    KernelDef("FixedLengthRecordDatasetV2", FixedLengthRecordDataset),
    KernelDef("MatchingFilesDataset", MatchingFilesDataset),
    KernelDef("TFRecordDataset", TFRecordDataset),
    KernelDef("TFRecordDatasetV2", TFRecordDataset),
    KernelDef("TextLineDataset", TextLineDataset),
)
