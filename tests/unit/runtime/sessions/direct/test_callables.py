"""Callables: feeds by position, connections, and handles that were released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import Code
from tests.unit.runtime.sessions.graphs import X, direct_session, g1
from tests.unit.runtime.sessions.session_errors import error_of


def test_callables() -> None:
    session = direct_session(g1())
    handle = session.make_callable(pb.CallableOptions(feed=["x"], fetch=["m", "n"]))
    assert session.run_callable(handle, [X]) == [6, -6]
    message = error_of(lambda: session.run_callable(handle, [])).message
    assert message == "Expected 1 feed tensors, but got 0"
    session.release_callable(handle)
    assert error_of(lambda: session.run_callable(handle, [X])).message == (
        "Attempted to run callable after handle was released"
    )
    assert error_of(lambda: session.run_callable(99, [X])).message == "No such callable handle"


@pytest.mark.parametrize("feeds", [None, 3, iter([X])])
def test_the_feeds_of_a_callable_are_a_list(feeds: Any) -> None:
    session = direct_session(g1())
    handle = session.make_callable(pb.CallableOptions(feed=["x"], fetch=["m"]))
    error = error_of(lambda: session.run_callable(handle, feeds))
    assert error.code is Code.INVALID_ARGUMENT
    assert error.message == f"feeds must be a list of tensors, got {type(feeds).__name__}"


@pytest.mark.parametrize("feed", [["x", "x"], ["x", "x:0"]])
def test_a_callable_feeds_a_tensor_once(feed: list[str]) -> None:
    error = error_of(
        lambda: direct_session(g1()).make_callable(pb.CallableOptions(feed=feed, fetch=["m"]))
    )
    assert error.code is Code.INVALID_ARGUMENT
    assert error.message == f'Endpoint "{feed[1]}" fed more than once.'


def connected(source: str, target: str, **options: object) -> pb.CallableOptions:
    connection = pb.TensorConnection(from_tensor=source, to_tensor=target)
    return pb.CallableOptions(tensor_connection=[connection], **options)  # type: ignore[arg-type]


def test_a_connection_puts_one_output_in_place_of_another() -> None:
    session = direct_session(g1())
    handle = session.make_callable(connected("a:0", "x:0", fetch=["n"]))
    assert session.run_callable(handle, []) == [-4]
    assert session.run({"x": X}, ["n"]) == [-6]


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (connected("n:0", "x:0", fetch=["n"]), Code.INVALID_ARGUMENT, "would create a cycle."),
        (connected("zz:0", "x:0", fetch=["n"]), Code.INVALID_ARGUMENT, "unknown node"),
        (connected("a:9", "x:0", fetch=["n"]), Code.INVALID_ARGUMENT, "unknown edge"),
        (connected("a:0", "zz:0", fetch=["n"]), Code.NOT_FOUND, "unable to find feed output"),
        (
            connected("a:0", "x:0", fetch=["n"], feed=["x:0"]),
            Code.INVALID_ARGUMENT,
            "fed more than once",
        ),
        (
            pb.CallableOptions(
                tensor_connection=[
                    pb.TensorConnection(from_tensor=source, to_tensor="x:0")
                    for source in ("a:0", "a:0")
                ],
                fetch=["n"],
            ),
            Code.INVALID_ARGUMENT,
            "fed more than once",
        ),
    ],
)
def test_refused_connections(options: pb.CallableOptions, code: Code, text: str) -> None:
    error = error_of(lambda: direct_session(g1()).make_callable(options))
    assert error.code is code
    assert text in error.message


def test_arrays_of_another_byte_order_and_of_other_types() -> None:
    session = direct_session(g1())
    handle = session.make_callable(pb.CallableOptions(feed=["x"], fetch=["m"]))
    (value,) = session.run_callable(handle, [np.array([1, 3], ">f4")])
    assert value.dtype == np.float32 and value.tolist() == [2, 6]
    for other, name in ((">f8", "double"), ("i4", "int32"), ("S1", "string")):
        error = error_of(lambda other=other: session.run_callable(handle, [np.array([1], other)]))
        assert error.message == f"Type mismatch: actual {name} vs. expect float"
