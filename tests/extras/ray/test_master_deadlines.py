"""Which deadline of a call of TensorFlow's master a front end keeps, if the host does not."""

from __future__ import annotations

import types
from typing import Any

import pytest

import protos as pb
from server.rpc.ray_master_calls import _seconds_left

HANDLE = "a" * 22 + "-r0123456789ab"


def step(milliseconds: int) -> bytes:
    options = pb.RunOptions(timeout_in_ms=milliseconds)
    return pb.RunStepRequest(session_handle="a", options=options).SerializeToString()


@pytest.mark.parametrize(
    ("name", "milliseconds", "of_call", "left"),
    [  # the session has no timeout
        ("RunStep", 0, None, None),
        ("RunStep", 0, 3.0, 3.0),
        ("RunStep", 1500, None, 1.5),
        ("RunStep", 1500, 3.0, 1.5),
        ("RunStep", 1500, 0.5, 0.5),  # the earlier one, whose it is
        ("RunStep", 1500, 0.0, 0.0),
        ("RunStep", -1, 3.0, 3.0),
        ("ExtendSession", 1500, 3.0, 3.0),  # has other fields
        ("ExtendSession", 1500, None, None),
    ],
)
def test_the_earlier_deadline_holds(
    name: str, milliseconds: int, of_call: float | None, left: float | None
) -> None:
    context: Any = types.SimpleNamespace(seconds_left=of_call)
    assert _seconds_left(name, HANDLE, step(milliseconds), context) == left


@pytest.mark.parametrize(
    ("name", "milliseconds", "of_call", "left"),
    [
        ("RunStep", 0, None, 2.0),
        ("RunStep", 0, 3.0, 2.0),
        ("RunStep", 0, 0.5, 0.5),
        ("RunStep", 60_000, None, 60.0),  # options come first
        ("ExtendSession", 0, None, None),
        ("RunCallable", 0, None, None),  # a callable may have a longer one
    ],
)
def test_a_step_without_options_has_the_timeout_of_its_session(
    name: str, milliseconds: int, of_call: float | None, left: float | None
) -> None:
    context: Any = types.SimpleNamespace(seconds_left=of_call)
    handle = HANDLE.replace("-r", "-t2000-r")
    assert _seconds_left(name, handle, step(milliseconds), context) == left
