"""N-grams of tensors, whose kernel ends TensorFlow's process, and arguments that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.op_packages.text.ngrams import ngrams_string_join

ROWS = np.array([[b"a", b"b", b"c"], [b"d", b"", b"f"]], object)


def test_a_tensor_has_ngrams_along_its_last_dimension() -> None:
    (found,) = [ngrams_string_join(ROWS, width=2, axis=-1, string_separator="-")]
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [[b"a-b", b"b-c"], [b"d-", b"-f"]]


@pytest.mark.parametrize(("width", "shape"), [(3, (2, 1)), (4, (2, 0))])
def test_a_width_beyond_the_row_gives_nothing(width: int, shape: tuple[int, ...]) -> None:
    found = ngrams_string_join(ROWS, width=width, axis=-1, string_separator="")
    assert isinstance(found, np.ndarray)
    assert found.shape == shape


def test_rows_without_elements() -> None:
    empty = np.empty((3, 0), object)
    found = ngrams_string_join(empty, width=1, axis=-1, string_separator="")
    assert isinstance(found, np.ndarray)
    assert found.shape == (3, 0)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(InternalError, match="axis != -1: 0"):
        ngrams_string_join(ROWS, width=1, axis=0, string_separator="")
    with pytest.raises(InvalidArgumentError, match="width must be positive, got 0"):
        ngrams_string_join(ROWS, width=0, axis=-1, string_separator="")
    splits = np.array([0, 9], np.int64)
    with pytest.raises(InvalidArgumentError, match="row splits must ascend"):
        ngrams_string_join(ROWS[0], splits, width=1, axis=-1, string_separator="")
