"""Stored inputs and expected answers."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from bench.engines.model_inputs import batch_of, relative_error, stored_arrays


def test_strings_come_back_as_bytes_objects(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "inputs.npz", x=np.float32([1, 2]), town=np.array([b"Ulm", b"Bern"]))
    stored = stored_arrays(tmp_path / "inputs.npz")
    assert stored["town"].tolist() == [b"Ulm", b"Bern"]
    assert stored["town"].dtype == object
    assert stored["x"].dtype == np.float32


def test_a_batch_repeats_rows_in_order() -> None:
    x = np.arange(6).reshape(3, 2)
    assert batch_of({"x": x}, 1)["x"].tolist() == [[0, 1]]
    assert batch_of({"x": x}, 5)["x"][:, 0].tolist() == [0, 2, 4, 0, 2]


def test_the_error_is_relative_to_the_largest_value_of_the_output() -> None:
    expected = {"a": np.float32([0, 10]), "b": np.float32([0.0])}
    assert relative_error({"a": np.float32([1, 10]), "b": np.float32([0])}, expected) == 0.1


def test_other_strings_or_nan_are_no_small_error() -> None:
    words = np.array([b"cat"], object)
    assert relative_error({"a": words}, {"a": words}) == 0
    assert relative_error({"a": np.array([b"dog"], object)}, {"a": words}) == 1
    assert relative_error({"a": np.float32([np.nan])}, {"a": np.float32([1])}) == 1


def test_a_missing_output_is_an_error() -> None:
    with pytest.raises(KeyError):
        relative_error({}, {"a": np.float32([1])})
