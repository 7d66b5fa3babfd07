"""What a program hands to a session that is of a wrong type, or of an unusual kind."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import InvalidArgumentError, RunRequest, SessionOptions, new_session
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, in_caller

FEEDS = {"x": X}
OPTIONS = pytest.mark.parametrize("options", [None, in_caller()], ids=["pool", "caller"])


@pytest.mark.parametrize("name", [("m", 0), ["m"], None, b"m:0", pathlib.Path("m"), 5], ids=repr)
@OPTIONS
def test_a_name_that_is_no_string(name: Any, options: pb.RunOptions | None) -> None:
    session = direct_session(g1())
    session.run(FEEDS, ["m"])  # with and without a compiled step of the other names
    got = f"must be names of the graph, got {name!r}"
    with pytest.raises(InvalidArgumentError) as caught:
        session.run(FEEDS, [name], (), options)
    assert caught.value.message == f"fetches {got}"
    with pytest.raises(InvalidArgumentError) as caught:
        session.run(FEEDS, [], [name], options)
    assert caught.value.message == f"targets {got}"
    with pytest.raises(InvalidArgumentError) as caught:
        session.run_async(RunRequest(FEEDS, [name])).result()
    assert caught.value.message == f"fetches {got}"
    with pytest.raises(InvalidArgumentError) as caught:
        session.partial_run_setup(["x"], [name])
    assert caught.value.message == f"fetches {got}"
    assert session.run_if_short(RunRequest(FEEDS, [name])) is None


def test_a_key_of_the_feeds_that_is_no_string() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(g1()).run({b"x": X}, ["m"])  # type: ignore[dict-item]
    assert caught.value.message == "feeds must be names of the graph, got b'x'"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, ["m"]), "feeds must be a Mapping, got NoneType"),
        (([("x", X)], ["m"]), "feeds must be a Mapping, got list"),
        ((FEEDS, "m"), "fetches must be a list of names, got 'm'"),
        ((FEEDS, None), "fetches must be a list of names, got None"),
        ((FEEDS, [], 5), "targets must be a list of names, got 5"),
        ((FEEDS, ["m"], (), {}), "options must be a RunOptions, got dict"),
        ((FEEDS, ["m"], (), pb.ConfigProto()), "options must be a RunOptions, got ConfigProto"),
        ((FEEDS, ["m"], (), None, {}), "metadata must be a RunMetadata, got dict"),
    ],
)
def test_an_argument_of_a_wrong_type(arguments: Any, message: str) -> None:
    session = direct_session(g1())
    for _ in range(2):
        with pytest.raises(InvalidArgumentError) as caught:
            session.run(*arguments)
        assert caught.value.message == message
        session.run(FEEDS, ["m"])


def test_fetches_that_can_be_read_once() -> None:
    session = direct_session(g1())
    for _ in range(2):
        assert session.run(FEEDS, (name for name in ["m", "n"])) == [6, -6]  # type: ignore[arg-type]


@pytest.mark.parametrize("graph", [None, b"", {}, pb.MetaGraphDef()], ids=repr)
def test_a_graph_that_is_no_graph_def(graph: Any) -> None:
    message = f"The graph must be a GraphDef, got {type(graph).__name__}"
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session().create(graph)
    assert caught.value.message == message
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(g1()).extend(graph)
    assert caught.value.message == message


def test_options_of_a_session_of_a_wrong_type() -> None:
    with pytest.raises(InvalidArgumentError, match=r"target must be a str, got int"):
        SessionOptions(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"config must be a ConfigProto, got dict"):
        SessionOptions(config={})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="new_session must be a SessionOptions, got str"):
        new_session("")  # type: ignore[arg-type]


def test_handles_of_a_wrong_type() -> None:
    session = direct_session(g1())
    message = "The options of a callable must be a CallableOptions, got dict"
    with pytest.raises(InvalidArgumentError, match=message):
        session.make_callable({})  # type: ignore[arg-type]
    handle: Any
    for handle in ("1", [], None):
        with pytest.raises(InvalidArgumentError, match="No such callable handle"):
            session.run_callable(handle, [])
        with pytest.raises(InvalidArgumentError, match="No such callable handle"):
            session.release_callable(handle)
        with pytest.raises(InvalidArgumentError, match="Must run 'setup'"):
            session.partial_run(handle, {}, [])


def test_a_handle_may_be_an_integer_of_numpy() -> None:
    session = direct_session(g1())
    options = pb.CallableOptions(feed=["x:0"], fetch=["m:0"])
    handle: Any = np.int64(session.make_callable(options))
    assert session.run_callable(handle, [X]) == [6]
    session.release_callable(handle)
    with pytest.raises(InvalidArgumentError, match="after handle was released"):
        session.run_callable(handle, [X])


@pytest.mark.parametrize("value", [None, 5, Ellipsis, "\ud800"], ids=ascii)
def test_an_array_of_strings_with_an_element_that_is_none(value: object) -> None:
    session = direct_session(_strings())
    array = np.array([b"a", value], object)
    for fed in (array, [b"a", value]):
        with pytest.raises(
            InvalidArgumentError, match=r"Expects arg\[0\] to be string but .* for s: "
        ):
            session.run({"s": fed}, ["length"])


def test_an_array_of_text_is_fed_as_utf_8() -> None:
    session = direct_session(_strings())
    expected = [3, 0]
    for array in (
        np.array(["aé", ""], object),
        np.array(["aé", b""], object),
        np.array(["aé", ""]),
        np.array(["aé", ""], np.dtypes.StringDType()),
    ):
        length, same = session.run({"s": array}, ["length", "s2"])
        assert length.tolist() == expected
        assert same.tolist() == ["aé".encode(), b""]


class _Unusable:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise self._error


@pytest.mark.parametrize(
    "error", [RuntimeError("a Tensor that requires grad"), KeyError("a"), OSError("gone")], ids=repr
)
def test_a_value_whose_conversion_fails(error: Exception) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(f"for x: {error}")):
        direct_session(g1()).run({"x": _Unusable(error)}, ["m"])


@OPTIONS
def test_elements_of_a_masked_array_or_a_matrix_are_plain(options: pb.RunOptions | None) -> None:
    """TF: session.py (feeds are converted by `np.asarray`)."""
    graph = Graph()
    x = graph.placeholder("float32", "x")
    axis = graph.add("Const", name="axis", dtype="int32", value=np.int32(0))[0]
    graph.add("Sum", x, axis, name="sum")
    session = direct_session(graph.graph_def)
    matrix = np.ones((1, 2), np.float32).view(np.matrix)
    masked = np.ma.masked_array(np.ones(3, np.float32), [True, False, False])
    for value, expected in ((masked, 3), (matrix, [1, 1])):
        for _ in range(3):
            (result,) = session.run({"x": value}, ["sum"], (), options)
            assert not isinstance(result, np.ma.MaskedArray | np.matrix)
            assert result.tolist() == expected


def _strings() -> pb.GraphDef:
    graph = Graph()
    text = graph.placeholder("string", "s")
    graph.add("StringLength", text, name="length")
    graph.add("Identity", text, name="s2")
    return graph.graph_def
