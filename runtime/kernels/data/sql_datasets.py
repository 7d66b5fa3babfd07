"""SqlDataset: the rows that a query to a SQLite file returns.

A query may only select; it can neither write nor attach another file.

TF: tensorflow/core/kernels/data/experimental/sql_dataset_op.cc, sql/sqlite_query_connection.cc
"""

from __future__ import annotations

import os
import pathlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OpError, UnknownError
from runtime.framework.allocation import tensor_limit
from runtime.framework.data.dataset import Dataset, DatasetIterator, Element, State
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_errors import file_error
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.string_tensor import scalar_string, string_tensor

# Type of a component → (SQL type to which the column is cast, Python type of its values).
_SQL_TYPES: dict[DataType, tuple[str, type]] = {
    DataType.STRING: ("text", bytes),
    DataType.INT8: ("integer", int),
    DataType.INT16: ("integer", int),
    DataType.INT32: ("integer", int),
    DataType.INT64: ("integer", int),
    DataType.UINT8: ("integer", int),
    DataType.UINT16: ("integer", int),
    DataType.BOOL: ("integer", int),
    DataType.DOUBLE: ("real", float),
}
_ALLOWED_ACTIONS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
STEPS_BETWEEN_CHECKS = 100_000  # number of SQLite instructions between two checks for cancellation


class SqlDataset(Dataset):
    """SqlDataset: one element for each row of the query's result, with one scalar per column."""

    kind = "Sql"

    def __init__(
        self,
        driver_name: np.ndarray,
        data_source_name: np.ndarray,
        query: np.ndarray,
        *,
        output_types: tuple[DataType, ...],
        output_shapes: tuple[PartialShape, ...],
    ) -> None:
        super().__init__(output_types, output_shapes)
        driver = scalar_string(driver_name).decode(errors="replace")
        if driver != "sqlite":
            raise InvalidArgumentError(
                f"The database type, {driver}, is not supported by SqlDataset. "
                "The set of supported databases is: {'sqlite'}."
            )
        if not set(output_types) <= _SQL_TYPES.keys():
            raise InvalidArgumentError(
                "Each element of `output_types_` must be one of: DT_STRING, DT_INT8, DT_INT16, "
                "DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_BOOL, DT_DOUBLE "
            )
        if any(shape != () for shape in output_shapes):
            raise InvalidArgumentError("Each element of `output_shapes_` must be a scalar.")
        self.path = os.fsdecode(scalar_string(data_source_name))
        self.query = scalar_string(query).decode(errors="replace")

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator with its own connection, which is opened for the first row."""
        return _RowIterator(self)


class _RunningCall:
    """The call of `get_next` that is running, if any.

    The connection and its rows refer to this, and not to the iterator, which refers to them: an
    abandoned iterator would keep the file open until such cycles are collected.
    """

    def __init__(self) -> None:
        self.context: OpKernelContext | None = None

    def is_cancelled(self) -> bool:
        return self.context is not None and self.context.cancellation.is_cancelled

    def query_error(self, what: str, error: Exception, rest: str) -> OpError:
        """Return the error of a query that failed; raise that of the cancellation if cancelled."""
        if self.context is not None:
            self.context.cancellation.check()
        # The low byte of a SQLite error code is the primary error code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return UnknownError(f"{what}() failed: [{code}] {error}{rest}")


class _RowIterator(DatasetIterator):
    state = ("position",)

    def __init__(self, dataset: SqlDataset) -> None:
        self._dataset = dataset
        self._rows: Iterator[Element] | None = None
        self._call = _RunningCall()
        self.position = 0  # number of rows returned so far

    def get_next(self, context: OpKernelContext) -> Element | None:
        self._call.context = context
        try:
            if self._rows is None:
                self._rows = self._execute_query(context)
            row = next(self._rows, None)
        except OpError:
            self._rows = None  # the next call runs the query again
            raise
        finally:
            self._call.context = None
        self.position += row is not None
        return row

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        wanted, self.position = self.position, 0
        while self.position < wanted and self.get_next(context) is not None:
            pass

    def _execute_query(self, context: OpKernelContext) -> Iterator[Element]:
        dataset = self._dataset
        context.step.files.check_read(dataset.path)
        connection = self._connect(dataset.path)
        try:
            cursor = connection.execute(dataset.query)
        except (sqlite3.Error, sqlite3.Warning) as error:
            connection.close()
            raise self._call.query_error("Prepare", error, f": {dataset.query}") from None
        columns, types = len(cursor.description or ()), dataset.output_types
        if columns != len(types):
            connection.close()
            raise InvalidArgumentError(
                f"The number of columns in query ({columns}) must match the number of elements in "
                f"output_types ({len(types)})."
            )
        return _elements(connection, cursor, types, self._call)

    def _connect(self, path: str) -> sqlite3.Connection:
        if not os.path.exists(path):
            raise file_error(FileNotFoundError(2, path), path)
        address = f"{pathlib.Path(path).absolute().as_uri()}?mode=ro"
        # Any thread may call `get_next`, but only one at a time.
        connection = sqlite3.connect(
            address, uri=True, check_same_thread=False, isolation_level=None
        )
        connection.text_factory = bytes
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(tensor_limit(), 1 << 30))
        connection.set_authorizer(_authorize)
        connection.set_progress_handler(self._call.is_cancelled, STEPS_BETWEEN_CHECKS)
        return connection


def _elements(
    connection: sqlite3.Connection,
    cursor: sqlite3.Cursor,
    types: tuple[DataType, ...],
    call: _RunningCall,
) -> Iterator[Element]:
    """Yield the rows, and close the connection after the last one, or when abandoned."""
    try:
        for row in cursor:
            yield tuple(
                _tensor(connection, value, data_type)
                for value, data_type in zip(row, types, strict=True)
            )
    except sqlite3.Error as error:
        raise call.query_error("Step", error, "") from None
    finally:
        connection.close()


def _authorize(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED_ACTIONS else sqlite3.SQLITE_DENY


def _tensor(connection: sqlite3.Connection, value: Any, data_type: DataType) -> np.ndarray:
    """Return a column's value as a scalar of `data_type`, to which SQLite converts the value.

    NULL becomes 0 or an empty string.
    """
    name, python_type = _SQL_TYPES[data_type]
    if value is None:
        value = python_type()
    elif type(value) is not python_type:
        (value,) = connection.execute(f"select cast(? as {name})", (value,)).fetchone()
    if data_type is DataType.STRING:
        return string_tensor([value], ())
    # Narrower integers keep the low bits, like casts in C.
    wide = np.array(value, np.float64 if data_type is DataType.DOUBLE else np.int64)
    return wide.astype(data_type.numpy)


KERNELS = (
    KernelDef("ExperimentalSqlDataset", SqlDataset),
    KernelDef("SqlDataset", SqlDataset),
)
