"""Shapes and places as messages write them."""

from __future__ import annotations

import pytest

from runtime.framework.shapes import position_text, shape_text, sizes_text


@pytest.mark.parametrize(
    ("shape", "text"), [((), "[]"), ((2, 3), "[2,3]"), ((2, -1), "[2,?]"), (None, "<unknown>")]
)
def test_a_shape_shows_what_is_unknown_of_it(shape: tuple[int, ...] | None, text: str) -> None:
    assert shape_text(shape) == text


def test_sizes_that_were_given_stay_as_they_are() -> None:
    assert sizes_text([2, -1]) == "[2,-1]"


@pytest.mark.parametrize(
    ("flat", "shape", "text"), [(0, (), ""), (3, (5,), "[3]"), (4, (2, 3), "[1,1]")]
)
def test_a_place_has_a_number_for_each_dimension(
    flat: int, shape: tuple[int, ...], text: str
) -> None:
    assert position_text(flat, shape) == text
