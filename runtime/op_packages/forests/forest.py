"""A decision forest that the library `ydf` has loaded, and its predictions for packed features.

The ops give the features as matrices, one for each kind of feature, with a column for each feature
in the order of the model's columns. Categories arrive as numbers of the model's dictionary.

Source: ydf's Python API; ydf_tf/api.py for the packing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ydf
from ydf.cc import ydf as native

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task

ydf.verbose(0)  # the library would print to standard output

_NUMERICAL, _BOOLEAN, _CATEGORICAL, _CATEGORICAL_SET = range(4)
# Names of column types in the data specification → kind of feature.
_KINDS = {
    "NUMERICAL": _NUMERICAL,
    "DISCRETIZED_NUMERICAL": _NUMERICAL,
    "BOOLEAN": _BOOLEAN,
    "CATEGORICAL": _CATEGORICAL,
    "CATEGORICAL_SET": _CATEGORICAL_SET,
}
_KIND_NAMES = ("numerical", "boolean", "categorical", "categorical-set")
# Kind of the elements → method of the library's dataset.
_POPULATE = {
    "f": "PopulateColumnNumericalNPFloat32",
    "b": "PopulateColumnBooleanNPBool",
    "O": "PopulateColumnCategoricalSetNPBytes",
}
# A program that loads a model, so that what the library does to its process it does there. What it
# writes to stderr stays small, so that it never waits for a reader.
_TRIAL = """
import sys, ydf
try:
    ydf.verbose(0)
    options = ydf.ModelIOOptions(file_prefix=sys.argv[2])
    ydf.load_model(sys.argv[1], advanced_options=options)
except Exception as error:
    sys.exit(str(error)[:2000])
"""
_TRIAL_SECONDS = 0.05  # between two looks at whether the step has been cancelled
# Rows of a prediction between two looks at whether the step has been cancelled.
_ROWS = 1 << 14
# A node of the file has at least this many bytes; a tree in memory takes several times the file.
_MEMORY_OF_FILE = 8


@dataclasses.dataclass(frozen=True)
class Features:
    """The packed features of a batch, as the ops take them.

    numerical and boolean float32 `[batch, n]`, categorical int32 `[batch, n]`; categorical sets
    int32 `[items]` with the row splits int64 of the items of each set and of the sets of each row.
    """

    numerical: np.ndarray
    boolean: np.ndarray
    categorical: np.ndarray
    set_values: np.ndarray
    set_splits: np.ndarray
    row_splits: np.ndarray


class Forest:
    """A loaded model. It never changes, so that any thread may call it at any time."""

    def __init__(self, folder: str, file_prefix: str) -> None:
        """Load the model; raise InvalidArgumentError if it is damaged."""
        self.bytes = _MEMORY_OF_FILE * sum(map(os.path.getsize, model_files(folder, file_prefix)))
        _try_elsewhere(folder, file_prefix)
        try:
            options = ydf.ModelIOOptions(file_prefix=file_prefix)
            self._model: Any = ydf.load_model(folder, advanced_options=options)
        except Exception as error:  # the library raises several classes
            raise _not_loaded(folder, file_prefix, str(error)) from None
        spec = self._model.data_spec()
        self.names: tuple[list[str], ...] = ([], [], [], [])
        self._places: dict[str, int] = {}  # of the columns in the data specification
        self._bins: dict[str, int] = {}  # of discretized features
        self._vocabularies: dict[str, np.ndarray] = {}
        self._categories: dict[str, int] = {}
        inputs = set(self._model.input_feature_names())
        for place, column in enumerate(spec.columns):
            if column.name not in inputs:
                continue
            self._places[column.name] = place
            kind = _KINDS.get(_type_name(column))
            if kind is None:
                raise InvalidArgumentError(
                    f"Feature {column.name!r} of the forest has type {_type_name(column)}, which "
                    f"is none of {', '.join(_KINDS)}"
                )
            self.names[kind].append(column.name)
            if kind == _CATEGORICAL_SET:
                self._vocabularies[column.name] = _vocabulary(column)
            elif kind == _CATEGORICAL:
                self._categories[column.name] = column.categorical.number_of_unique_values
                column.categorical.is_already_integerized = True
            elif _type_name(column) == "DISCRETIZED_NUMERICAL":
                self._bins[column.name] = column.discretized_numerical.maximum_num_bins
        self._model.set_data_spec(spec)
        self._spec = spec
        self._native = self._model._model  # the public call copies the specification each time
        task = self._model.task()
        self.is_classification = task == ydf.Task.CLASSIFICATION
        self.classes = list(self._model.label_classes()) if self.is_classification else [""]

    def predict(self, features: Features) -> np.ndarray:
        """Return the predictions float32 `[batch, classes]`, or `[batch, 1]` if not of classes."""
        found = self._by_rows(
            features, lambda data: self._native.Predict(data, False, num_threads=1)
        )
        if self.is_classification and found.ndim == 1:
            return np.stack([1 - found, found], axis=1)
        return found if found.ndim == 2 else found[:, None]

    def leaves(self, features: Features) -> np.ndarray:
        """Return the number of the reached leaf of each tree, int32 `[batch, trees]`."""
        return self._by_rows(features, self._native.PredictLeaves).astype(np.int32)

    def _by_rows(self, features: Features, call: Callable[[Any], np.ndarray]) -> np.ndarray:
        columns, rows = self._columns(features)
        parts = []
        for begin in range(0, max(rows, 1), _ROWS):
            check_task()
            part = {name: values[begin : begin + _ROWS] for name, values in columns.items()}
            try:
                parts.append(np.asarray(call(self._dataset(part))))
            except (ValueError, RuntimeError) as error:
                raise InvalidArgumentError(f"The forest refused the features: {error}") from None
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _dataset(self, columns: dict[str, Any]) -> Any:
        """Return the library's form of the columns."""
        data = native.VerticalDataset()
        data.CreateColumnsFromDataSpec(self._spec)
        for name, values in columns.items():
            place = self._places[name]
            if name in self._categories:
                data.PopulateColumnCategoricalIntegerizedNPInt32(
                    name, values, ydf_dtype=None, max_val=self._categories[name] - 1,
                    most_frequent_value=0, num_missing=0, column_idx=place,
                )  # fmt: skip
            elif name in self._bins:
                data.PopulateColumnDiscretizedNumericalNPFloat32(
                    name, values, ydf_dtype=None, maximum_num_bins=self._bins[name],
                    column_idx=place,
                )  # fmt: skip
            else:
                populate = getattr(data, _POPULATE[values.dtype.kind])
                populate(name, values, ydf_dtype=None, column_idx=place)
        data.SetAndCheckNumRowsAndFillMissing(False)
        return data

    def _columns(self, features: Features) -> tuple[dict[str, Any], int]:
        """Return (name → values of each row, the number of rows)."""
        matrices = (features.numerical, features.boolean, features.categorical)
        rows = self._check(matrices, features)
        columns: dict[str, Any] = {}
        for name, values in zip(self.names[_NUMERICAL], features.numerical.T, strict=True):
            columns[name] = np.ascontiguousarray(values)
        for name, values in zip(self.names[_BOOLEAN], features.boolean.T, strict=True):
            columns[name] = _truths(name, values)
        for name, values in zip(self.names[_CATEGORICAL], features.categorical.T, strict=True):
            columns[name] = _known(values, self._categories[name])
        columns.update(self._sets(features, rows))
        return columns, rows

    def _check(self, matrices: Sequence[np.ndarray], features: Features) -> int:
        """Return the number of rows; raise InvalidArgumentError if shapes don't fit the model."""
        rows: set[int] = set()
        for names, kind, matrix in zip(self.names, _KIND_NAMES, matrices, strict=False):
            if matrix.ndim != 2 or (matrix.shape[1] != len(names) and (names or matrix.size)):
                raise InvalidArgumentError(
                    f"The forest takes {len(names)} {kind} features ({', '.join(names) or 'none'}),"
                    f" as a matrix [batch, {len(names)}]; got shape {list(matrix.shape)}"
                )
            if names:
                rows.add(len(matrix))
        if self.names[_CATEGORICAL_SET]:
            rows.add(len(features.row_splits) - 1)
        if len(rows) != 1:
            raise InvalidArgumentError(
                f"All features must have the same number of rows; got {sorted(rows)}"
            )
        return rows.pop()

    def _sets(self, features: Features, rows: int) -> dict[str, np.ndarray]:
        names = self.names[_CATEGORICAL_SET]
        if not names:
            return {}
        _check_splits(features, rows, len(names))
        columns = {}
        for place, name in enumerate(names):
            vocabulary = self._vocabularies[name]
            texts = vocabulary[_places(features.set_values, len(vocabulary))]
            begins = features.row_splits[:-1] + place
            limits = features.set_splits[begins].tolist(), features.set_splits[begins + 1].tolist()
            column = np.empty(rows, object)
            for row, (begin, end) in enumerate(zip(*limits, strict=True)):
                column[row] = texts[begin:end]
            columns[name] = column
        return columns


def _try_elsewhere(folder: str, file_prefix: str) -> None:
    """Load the model in another process; raise InvalidArgumentError if that fails.

    Trees of great depth overflow the stack of the library, which ends its process.
    """
    command = [sys.executable, "-c", _TRIAL, folder, file_prefix]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            while process.poll() is None:
                check_task()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_TRIAL_SECONDS)
        finally:
            process.kill()
        assert process.stderr is not None
        said = process.stderr.read(1 << 16).decode(errors="replace").strip().splitlines()
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        raise _not_loaded(folder, file_prefix, f"its trees are too deep or damaged ({name})")
    if process.returncode:
        raise _not_loaded(folder, file_prefix, said[-1] if said else "no reason is known")


def _not_loaded(folder: str, file_prefix: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The forest {os.path.basename(folder)!r} with prefix {file_prefix!r} can't be loaded: "
        f"{reason}"
    )


def model_files(folder: str, file_prefix: str) -> list[str]:
    """Return the paths of a model's files; raise InvalidArgumentError if there is no model."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(file_prefix))
    except OSError as error:
        raise InvalidArgumentError(f"The forest can't be read: {error.strerror}") from None
    if f"{file_prefix}header.pb" not in names or f"{file_prefix}data_spec.pb" not in names:
        raise InvalidArgumentError(
            f"The folder {os.path.basename(folder)!r} has no forest with prefix {file_prefix!r}: "
            f"{file_prefix}header.pb or {file_prefix}data_spec.pb is missing"
        )
    return [os.path.join(folder, name) for name in names]


def _type_name(column: Any) -> str:
    return str(
        column.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number[column.type].name
    )


def _vocabulary(column: Any) -> np.ndarray:
    """Return the names of a column's categories, bytes, by number; the last one is *missing*."""
    names = [b"<OOD>"] * column.categorical.number_of_unique_values
    for name, item in column.categorical.items.items():
        if 0 <= item.index < len(names):
            names[item.index] = name.encode() if isinstance(name, str) else bytes(name)
    return np.array([*names, b""], np.bytes_)


def _places(items: np.ndarray, size: int) -> np.ndarray:
    """Return positions in a vocabulary: −1 (missing) is its last entry, what is unknown is 0."""
    return np.where(items == -1, size - 1, np.where((items < 0) | (items >= size - 1), 0, items))


def _truths(name: str, values: np.ndarray) -> np.ndarray:
    if np.isnan(values).any():
        raise InvalidArgumentError(
            f"Boolean feature {name!r} has a missing value, which this runtime can't give to the "
            "forest"
        )
    return np.ascontiguousarray(values >= 0.5)


def _known(values: np.ndarray, categories: int) -> np.ndarray:
    """Return the numbers of categories; what is not in the dictionary is 0, −1 is missing."""
    unknown = (values < -1) | (values >= categories)
    return np.ascontiguousarray(np.where(unknown, 0, values), np.int32)


def _check_splits(features: Features, rows: int, sets: int) -> None:
    splits, of_rows = features.set_splits, features.row_splits
    fits = (
        len(of_rows) == rows + 1
        and len(splits) == rows * sets + 1
        and (np.diff(of_rows) == sets).all()
        and int(of_rows[0]) == 0
        and int(splits[0]) == 0
        and (np.diff(splits) >= 0).all()
        and int(splits[-1]) == len(features.set_values)
    )
    if not fits:
        raise InvalidArgumentError(
            f"The row splits of the categorical-set features don't describe {sets} sets in each of "
            f"{rows} rows of {len(features.set_values)} items"
        )
