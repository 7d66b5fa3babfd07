"""CSVDataset and CSVDatasetV2: the records of CSV files, with one component for each column.

TF: tensorflow/core/kernels/data/experimental/csv_dataset_op.cc
"""

from __future__ import annotations

import itertools
import os
import weakref
import zlib
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import DataLossError, InvalidArgumentError
from runtime.framework.attr_value import text
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    State,
    scalar_argument,
)
from runtime.framework.dtypes import DataType, Types
from runtime.framework.io.csv_records import CsvRecord, CsvRecords
from runtime.framework.io.record_files import open_records
from runtime.framework.number_parsing import parse_number
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.string_tensor import items_of, scalar_string, string_tensor
from runtime.framework.tensor_text import readable

_COMPRESSIONS = ("", "ZLIB", "GZIP")


class CsvDataset(Dataset):
    """CSVDataset, CSVDatasetV2: the records of CSV files as scalars of the types of the defaults.

    `select_cols` has the numbers of the columns to return, `exclude_cols` those of the columns to
    leave out; at most one of the two is not empty. A column whose default has no elements is
    required.
    """

    kind = "CSV"

    def __init__(
        self,
        filenames: np.ndarray,
        compression_type: np.ndarray,
        buffer_size: np.ndarray,
        header: np.ndarray,
        field_delim: np.ndarray,
        use_quote_delim: np.ndarray,
        na_value: np.ndarray,
        select_cols: np.ndarray,
        *record_defaults_and_exclude_cols: np.ndarray,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(output_types, output_shapes)
        self.filenames = _file_names(filenames)
        compression = text(_string(compression_type, "compression_type"))
        rest = record_defaults_and_exclude_cols
        defaults, excluded = rest[: len(output_types)], rest[len(output_types) :]
        self.defaults = [_default(each, index) for index, each in enumerate(defaults)]
        selected_cols = _columns(select_cols, "`select_cols` must be a vector.")
        excluded_cols = _columns(excluded[0], "`exclude_cols` must be a vector") if excluded else []
        if scalar_argument(buffer_size, "buffer_size") <= 0:
            raise InvalidArgumentError("buffer_size should be positive")
        self.delimiter = _string(field_delim, "field_delim")
        if len(self.delimiter) != 1:
            raise InvalidArgumentError("field_delim should be only 1 char")
        self.has_header = bool(scalar_argument(header, "header"))
        self.use_quotes = bool(scalar_argument(use_quote_delim, "use_quote_delim"))
        self.missing = (b"", _string(na_value, "na_value"))
        if compression not in _COMPRESSIONS:
            raise InvalidArgumentError(f"Unsupported compression_type: {compression}.")
        self.compression = compression
        _check_columns(selected_cols, excluded_cols, len(output_types))
        self._selected, self._excluded = selected_cols, frozenset(excluded_cols)

    def selected(self, fields: list[bytes]) -> list[bytes]:
        """Return the fields of the columns that the dataset returns."""
        if self._selected:
            return [fields[column] for column in self._selected if column < len(fields)]
        if self._excluded:
            return [each for column, each in enumerate(fields) if column not in self._excluded]
        return fields

    def element(self, record: CsvRecord) -> Element:
        """Return the element that `record` describes.

        Raises InvalidArgumentError for the first field that is malformed, is missing without a
        default or is not a number of its column's type, or if the number of fields is wrong.
        """
        fields = self.selected(record.fields)
        element = tuple(itertools.starmap(self._component, enumerate(fields)))
        if record.problem:
            raise InvalidArgumentError(record.problem)
        expected = len(self.output_types)
        if len(element) != expected:
            raise InvalidArgumentError(
                f"Expect {expected} fields but have {len(element)} in record"
            )
        return element

    def _component(self, index: int, field: bytes) -> np.ndarray:
        if index >= len(self.output_types):
            raise InvalidArgumentError(
                f"Expect {len(self.output_types)} fields but have more in record"
            )
        default = self.defaults[index]
        if field in self.missing:
            if not default.size:
                raise InvalidArgumentError(f"Field {index} is required but missing in record!")
            return default.reshape(())
        data_type = self.output_types[index]
        if data_type is DataType.STRING:
            return string_tensor([field], ())
        try:
            with np.errstate(over="ignore"):  # 1e39 becomes infinity in float32
                return np.array(parse_number(field, data_type)).astype(data_type.numpy)
        except (ValueError, OverflowError):
            raise InvalidArgumentError(
                f"Field {index} in record is not a valid {data_type.tf_name}: {readable(field)}"
            ) from None

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the records of one file after another."""
        return _CsvIterator(self)


class _CsvIterator(DatasetIterator):
    state = ("file", "offset")

    def __init__(self, dataset: CsvDataset) -> None:
        self._dataset = dataset
        self._records: CsvRecords | None = None
        self._start = 0  # the offset in the file at which `_records` begins
        self.file = 0
        # how many decompressed bytes of the file were consumed; None before it is opened
        self.offset: int | None = None

    def get_next(self, context: OpKernelContext) -> Element | None:
        while self.file < len(self._dataset.filenames):
            context.cancellation.check()
            record = self._next_record(context)
            if record is not None:
                return self._dataset.element(record)
            self._records = None
            self.file += 1
            self.offset = None
        return None

    def _next_record(self, context: OpKernelContext) -> CsvRecord | None:
        if self._records is None:
            self._records = self._opened(context, 0)
            if self._dataset.has_header:
                self._skip_header(self._records)
        record = self._records.next_record()
        self.offset = self._start + self._records.offset
        return record

    def _skip_header(self, records: CsvRecords) -> None:
        header = records.next_record()
        self.offset = self._start + records.offset
        if header is None or header.problem:
            raise InvalidArgumentError("Can't read header of file")

    def _opened(self, context: OpKernelContext, offset: int) -> CsvRecords:
        dataset = self._dataset
        name = dataset.filenames[self.file]
        context.step.files.check_read(name)
        file = open_records(name, dataset.compression)
        try:
            file.seek(offset)
        except (OSError, EOFError, zlib.error) as error:
            file.close()
            raise DataLossError(f"corrupted record at {offset}: {error}") from None
        self._start = offset
        records = CsvRecords(file, dataset.delimiter, dataset.use_quotes)
        weakref.finalize(records, file.close)
        return records

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        if self.offset is not None:
            self._records = self._opened(context, self.offset)


def _file_names(filenames: np.ndarray) -> list[str]:
    if np.ndim(filenames) > 1:
        raise InvalidArgumentError("`filenames` must be a scalar or a vector.")
    return [os.fsdecode(name) for name in items_of(filenames)]


def _string(value: np.ndarray, name: str) -> bytes:
    scalar_argument(value, name)  # raises unless it is a scalar
    return scalar_string(value)


def _default(given: np.ndarray, index: int) -> np.ndarray:
    default = np.asarray(given)
    if default.ndim > 1:
        raise InvalidArgumentError("Each record default should be at most rank 1")
    if default.size > 1:
        raise InvalidArgumentError(
            f"There should only be 1 default per field but field {index} has {default.size}"
        )
    return default


def _columns(columns: np.ndarray, not_a_vector: str) -> list[int]:
    if np.ndim(columns) != 1:
        raise InvalidArgumentError(not_a_vector)
    listed: list[int] = np.asarray(columns).tolist()
    return listed


def _check_columns(selected: Sequence[int], excluded: Sequence[int], count: int) -> None:
    if selected and len(selected) != count:
        raise InvalidArgumentError("select_cols should match output size")
    _check_increasing(selected, "select_cols")
    if selected and excluded:
        raise InvalidArgumentError("Either select_cols or exclude_cols should be empty")
    _check_increasing(excluded, "exclude_cols")


def _check_increasing(columns: Sequence[int], name: str) -> None:
    if any(after <= before for before, after in itertools.pairwise(columns)):
        raise InvalidArgumentError(f"{name} should be strictly increasing indices")
    if columns and columns[0] < 0:
        raise InvalidArgumentError(f"{name} should be non-negative indices")


KERNELS = (
    KernelDef("CSVDataset", CsvDataset),
    KernelDef("CSVDatasetV2", CsvDataset),
    KernelDef("ExperimentalCSVDataset", CsvDataset),
)
