"""Create, extend, close: what a session allows when."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import AbortedError
from tests.integration.targets.graphs import FLOAT, chain, graph_of, node, square_of_n
from tests.integration.targets.target import Target

X = {"x:0": np.float32(3)}


def test_a_session_runs_what_it_was_created_with(target: Target) -> None:
    session = target.session(chain())
    (n,) = session.run(X, ["n:0"])
    assert n == np.float32(-6)


def test_a_session_without_a_graph_runs_nothing(target: Target) -> None:
    session = target.session()
    with target.raises("run before create"):
        session.run({}, ["n:0"])
    session.create(pb.GraphDef())
    with target.raises("run before create"):
        session.run({}, ["n:0"])
    session.create(chain())
    assert session.run(X, ["m:0"]) == [6]


def test_a_session_has_one_graph(target: Target) -> None:
    session = target.session(chain())
    with target.raises("create twice"):
        session.create(chain())
    assert session.run(X, ["m:0"]) == [6]


def test_the_first_extend_creates(target: Target) -> None:
    session = target.session()
    session.extend(chain())
    session.extend(square_of_n())
    assert session.run(X, ["s:0", "n:0"]) == [36, -6]


def test_extends_add_nodes(target: Target) -> None:
    session = target.session(chain())
    for number in range(3):
        session.extend(square_of_n(f"s{number}"))
    assert session.run(X, ["s0:0", "s2:0", "m:0"]) == [36, 36, 6]


@pytest.mark.parametrize(
    ("case", "extension"),
    [
        ("extend with a known name", square_of_n("n")),
        ("extend on an unknown input", graph_of(node("Neg", "k", ("nowhere:0", FLOAT)))),
    ],
)
def test_an_extend_is_all_or_nothing(target: Target, case: str, extension: pb.GraphDef) -> None:
    session = target.session(chain())
    both = graph_of(*square_of_n("good").node, *extension.node)
    with target.raises(case):
        session.extend(both)
    with target.raises("fetch of a node that was not added"):
        session.run(X, ["good:0"])
    session.extend(square_of_n("good"))
    assert session.run(X, ["good:0"]) == [36]


def test_an_extend_that_has_not_seen_the_newest_graph_is_refused(target: Target) -> None:
    session = target.session(chain())
    assert session.graph_version == 0
    session.extend(square_of_n())
    assert session.graph_version == 1
    if not target.is_remote:
        # Versions are the wire's: a session of this process has one holder, whose graph is the
        # newest. It counts them all the same, and nobody can set them.
        with pytest.raises(AttributeError):
            session.graph_version = 99
        session.extend(square_of_n("late"))
        assert (session.graph_version, session.run(X, ["late:0"])) == (2, [36])
        return
    session.graph_version = 99
    with pytest.raises(AbortedError, match=r"Current version is 1 but caller expected 99\."):
        session.extend(square_of_n("late"))
    session.graph_version = 1
    session.extend(square_of_n("late"))
    assert session.run(X, ["late:0"]) == [36]


def test_a_closed_session_refuses_everything_but_close(target: Target) -> None:
    session = target.session(chain())
    session.run(X, ["n:0"])
    session.close()
    session.close()
    calls = {
        "create": lambda: session.create(chain()),
        "extend": lambda: session.extend(square_of_n()),
        "run": lambda: session.run(X, ["n:0"]),
        "partial_run_setup": lambda: session.partial_run_setup(["x:0"], ["n:0"]),
        "partial_run": lambda: session.partial_run("handle", X, ["n:0"]),
        "make_callable": lambda: session.make_callable(pb.CallableOptions(fetch=["a:0"])),
        "run_callable": lambda: session.run_callable(1, []),
        "release_callable": lambda: session.release_callable(1),
        "list_devices": session.list_devices,
    }
    for call in calls.values():
        with target.raises("call on a closed session"):
            call()


def test_a_session_that_never_ran_may_be_closed(target: Target) -> None:
    target.session().close()
    target.session(chain()).close()


def test_an_unknown_op_is_refused_by_name(target: Target) -> None:
    graph = pb.GraphDef()
    graph.node.add(name="n", op="NoSuchOp")
    with target.raises("unknown op"):
        target.session(graph)
