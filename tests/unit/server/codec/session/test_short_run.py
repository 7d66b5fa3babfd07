"""Short `:run` bodies and answers are as `json_steps` has them, or left to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.api import DataType, ShortStep
from runtime.errors import InvalidArgumentError
from server.codec.session.json_steps import JsonSteps
from server.codec.session.short_run import ShortRun, StepNames, make_short_run, read_short_body
from server.steps.step_request import StepRequest

TYPES = {
    "f:0": (DataType.FLOAT, (-1,)),
    "d": (DataType.DOUBLE, None),
    "i": (DataType.INT32, (2, -1)),
    "b": (DataType.BOOL, ()),
    "s": (DataType.STRING, None),
    "h": (DataType.BFLOAT16, None),
    "r": (DataType.RESOURCE, None),
}


class Step(ShortStep):
    @property
    def may_run(self) -> bool:
        return True

    def run(self, values: Sequence[np.ndarray]) -> list[Any] | None:
        raise AssertionError("nothing runs here")


class Session:
    """A session with the tensors of TYPES, and with short steps or without."""

    def __init__(self, has_short_steps: bool = True) -> None:
        self._has_short_steps = has_short_steps
        self.session: Any = self

    def tensor_info(self, name: str) -> tuple[DataType, tuple[int, ...] | None]:
        if name not in TYPES:
            raise InvalidArgumentError(f"{name} is unknown")
        return TYPES[name]

    def short_step(self, *_: Sequence[str]) -> Step | None:
        return Step() if self._has_short_steps else None


def run_of(body: bytes) -> tuple[ShortRun, list[np.ndarray] | None] | None:
    read = read_short_body(body)
    made = read and make_short_run(read[0], Session())
    return None if read is None or made is None else (made, made.read(read[1]))


def check_agrees(body: bytes) -> bool:
    """Whether the body was read; if it was, the usual way reads the same."""
    run = run_of(body)
    if run is None or run[1] is None:
        return False
    step = StepRequest()
    JsonSteps("json", "string").read_run(body, step, Session())
    made, arrays = run
    assert made.names == (tuple(step.feeds), tuple(step.fetches), tuple(step.targets))
    for expected, array in zip(step.feeds.values(), arrays, strict=True):
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
        assert array.tobytes() == expected.tobytes()
    return True


@pytest.mark.parametrize(
    "body",
    [
        b'{"feeds":{"f:0":[1,2.5,-0.0]},"fetches":["d"]}',
        b'{"feeds":{"f:0":[1e300]},"fetches":["d","f:0"],"targets":["init"]}',
        b'{"feeds":{"i":[[1],[-2]],"b":true},"fetches":[]}',
        b'{"feeds":{"d":9007199254740993},"fetches":["d"]}',
        b'{"fetches":["i"]}',
        b'{"targets":["init"]}',
        b"{}",
    ],
)
def test_bodies_of_numbers_are_read(body: bytes) -> None:
    assert check_agrees(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"feeds":[],"fetches":["d"]}',
        b'{"feeds":{},"fetches":"d"}',
        b'{"fetches":[1]}',
        b'{"fetches":["d"],"targets":[null]}',
        b'{"fetches":["d"],"priority":"low"}',
        b'{"fetches":["d"],"options":{}}',
        b'{"fetches":["d","d"]}',
        b'{"fetches":["unknown"]}',
        b'{"feeds":{"unknown":1},"fetches":["d"]}',
        b'{"fetches":["s"]}',
        b'{"fetches":["h"]}',
        b'{"fetches":["r"]}',
        b'{"feeds":{"r":1},"fetches":["d"]}',
        b'{"feeds":{"s":["a"]},"fetches":["d"]}',
        b'{"feeds":{"h":[1]},"fetches":["d"]}',
        b'{"feeds":{"f:0":["NaN"]},"fetches":["d"]}',
        b'{"feeds":{"f:0":[[1]]},"fetches":["d"]}',
        b'{"feeds":{"f:0":[true]},"fetches":["d"]}',
        b'{"feeds":{"f:0":[]},"fetches":["d"]}',
        b'{"feeds":{"i":[[1],[2],[3]]},"fetches":["d"]}',
        b'{"feeds":{"i":[[1.0],[2]]},"fetches":["d"]}',
        b'{"feeds":{"f:0":{"dtype":"float32","shape":[1],"data":[1]}},"fetches":["d"]}',
    ],
)
def test_other_bodies_are_left_to_the_usual_way(body: bytes) -> None:
    run = run_of(body)
    assert run is None or run[1] is None


VALUE: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(TYPES)), VALUE, max_size=2))
def test_what_is_read_means_the_same_in_the_usual_way(feeds: dict[str, Any]) -> None:
    check_agrees(json.dumps({"feeds": feeds, "fetches": ["d"]}).encode())


def test_a_session_without_short_steps_has_no_short_runs() -> None:
    names = StepNames((), ("d",), ())
    assert make_short_run(names, Session(has_short_steps=False)) is None


def written(fetches: list[str], values: list[Any]) -> tuple[bytes | None, bytes]:
    """The answer, and that of the usual way."""
    made = make_short_run(StepNames((), tuple(fetches), ()), Session())
    assert made is not None
    step = StepRequest(fetches=fetches, fetch_types=[TYPES[name][0] for name in fetches])
    return made.write(values), JsonSteps("json", "string").write_run(step, values)


@pytest.mark.parametrize(
    ("fetches", "values"),
    [
        (["f:0"], [np.array([1.5, -0.0, 1e30], np.float32)]),
        (["d", "i"], [np.float64(0.1), np.array([[1], [2]], np.int32)]),
        (["d"], [np.array(0.1)]),
        (["b"], [np.bool_(True)]),
        (["f:0"], [np.zeros((0, 2), np.float32)]),
        ([], []),
    ],
    ids=str,
)
def test_arrays_of_numbers_are_written_as_by_the_usual_way(
    fetches: list[str], values: list[Any]
) -> None:
    short, usual = written(fetches, values)
    assert short == usual


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("f:0", np.array([np.nan], np.float32)),
        ("d", np.float64(np.inf)),
        ("f:0", np.zeros((2, 2), np.float32).T),
        ("f:0", np.zeros(1, ml_dtypes.bfloat16)),
    ],
    ids=str,
)
def test_other_values_are_left_to_the_usual_way(name: str, value: Any) -> None:
    made = make_short_run(StepNames((), (name,), ()), Session())
    assert made is not None and made.write([value]) is None
