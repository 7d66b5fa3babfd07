"""The shape of nested arrays, read from their punctuation."""

import json

import numpy as np
import pytest

from server.codec.large import array_shape as module
from server.codec.large.array_shape import MAX_NESTING, array_shape


def shape_of(text: str) -> tuple[int, ...] | None:
    padded = b"[,]" + text.encode() + b",["  # what is outside the bounds has no effect
    return array_shape(padded, 3, len(padded) - 2)


@pytest.fixture(params=[1 << 20, 16, 4], ids=["at once", "in steps", "in small steps"])
def step(request, monkeypatch):
    monkeypatch.setattr(module, "STEP_BYTES", request.param)


@pytest.mark.usefixtures("step")
@pytest.mark.parametrize(
    "shape",
    [(1,), (7,), (1, 1), (2, 3), (3, 1), (1, 3), (40, 2), (2, 40), (3, 4, 5), (2, 1, 1, 30, 2)],
)
def test_regular_arrays(shape):
    text = json.dumps(np.zeros(shape).tolist())
    assert shape_of(text) == shape
    assert shape_of(text.replace(",", " ,\n").replace("[", "[ ")) == shape


@pytest.mark.usefixtures("step")
@pytest.mark.parametrize(
    "text",
    [
        "[[1,2],[3]]",
        "[[1,2],[3],[4,5,6]]",  # as many numbers as [[1,2],[3,4],[5,6]]
        "[[1,2],3]",
        "[1,[2,3]]",
        "[[[1],[2]],[[3,4]]]",
        "[[1,2],[3,4]],[5]",
        "[[1,2],[3,4]]]",
        "[[1,2],[3,4]",
        "[[1,2],[[3,4]]]",
        "[[1],[2]]  ]",
        "[true,1]",
        "[1,null]",
        '["1"]',
        "[{}]",
        "[1;2]",
        "1,2",
        "",
        "[",
        "]",
        "[" * (MAX_NESTING + 1) + "1" + "]" * (MAX_NESTING + 1),
    ],
)
def test_everything_else_has_no_shape(text):
    assert shape_of(text) is None


def test_the_deepest_array():
    assert shape_of("[" * MAX_NESTING + "1" + "]" * MAX_NESTING) == (1,) * MAX_NESTING


@pytest.mark.parametrize("text", ["[,]", "[[],[]]", "[1 2]", "[[1]2]"])
def test_elements_are_not_looked_at(text):
    assert shape_of(text) is not None
