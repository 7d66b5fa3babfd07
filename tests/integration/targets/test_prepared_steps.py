"""Callables, and steps in parts."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import DeadlineExceededError
from tests.integration.targets.graphs import chain, queue, two_inputs
from tests.integration.targets.target import Target, fresh

ONE, TWO = np.float32(1), np.float32(2)


def test_a_callable_takes_feeds_by_position(target: Target) -> None:
    session = target.session(two_inputs())
    handle = session.make_callable(
        pb.CallableOptions(feed=["p2:0", "p1:0"], fetch=["sum:0", "i2:0", "i2:0"])
    )
    assert session.run_callable(handle, [TWO, ONE]) == [3, 2, 2]
    assert session.run_callable(handle, [ONE, ONE]) == [2, 1, 1]


def test_a_callable_fills_metadata(target: Target) -> None:
    session = target.session(chain())
    options = pb.CallableOptions(feed=["x:0"], fetch=["n:0"])
    options.run_options.trace_level = pb.RunOptions.FULL_TRACE
    metadata = pb.RunMetadata()
    session.run_callable(session.make_callable(options), [ONE], metadata)
    assert metadata.step_stats.dev_stats


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("callable of an unknown fetch", pb.CallableOptions(fetch=["nowhere:0"])),
        ("callable of an unknown feed", pb.CallableOptions(feed=["nowhere:0"], fetch=["a:0"])),
        ("callable of an unknown target", pb.CallableOptions(target=["nowhere"])),
    ],
)
def test_a_wrong_callable_is_not_made(
    target: Target, case: str, options: pb.CallableOptions
) -> None:
    with target.raises(case):
        target.session(chain()).make_callable(options)


def test_a_callable_is_used_as_it_was_made(target: Target) -> None:
    session = target.session(chain())
    handle = session.make_callable(pb.CallableOptions(feed=["x:0"], fetch=["n:0"]))
    with target.raises("unknown callable"):
        session.run_callable(handle + 1000, [ONE])
    session.release_callable(handle)
    with target.raises("released callable"):
        session.run_callable(handle, [ONE])


def test_a_callable_needs_its_feeds(target: Target) -> None:
    if target.name == "tensorflow":
        pytest.skip("TensorFlow's master dies of it")
    session = target.session(chain())
    handle = session.make_callable(pb.CallableOptions(feed=["x:0"], fetch=["n:0"]))
    with target.raises("callable with too few feeds"):
        session.run_callable(handle, [])


def test_a_callable_ends_at_its_deadline(target: Target) -> None:
    session = target.session(queue(fresh("q")))
    options = pb.CallableOptions(fetch=["dequeue:0"])
    options.run_options.timeout_in_ms = 200
    with pytest.raises(DeadlineExceededError):
        session.run_callable(session.make_callable(options), [])


def test_a_step_in_parts(target: Target) -> None:
    session = target.session(two_inputs())
    handle = session.partial_run_setup(["p1:0", "p2:0"], ["i1:0", "i2:0", "sum:0"])
    assert session.partial_run(handle, {"p1:0": ONE}, ["i1:0"]) == [1]
    assert session.partial_run(handle, {}, []) == []
    assert session.partial_run(handle, {"p2:0": TWO}, ["sum:0", "i2:0"]) == [3, 2]
    with target.raises("part of a finished partial run"):
        session.partial_run(handle, {"p1:0": ONE}, ["i1:0"])


def test_two_steps_in_parts_side_by_side(target: Target) -> None:
    session = target.session(two_inputs())
    names = (["p1:0", "p2:0"], ["i1:0", "sum:0"])
    first, second = session.partial_run_setup(*names), session.partial_run_setup(*names)
    assert session.partial_run(first, {"p1:0": ONE}, ["i1:0"]) == [1]
    assert session.partial_run(second, {"p1:0": TWO}, ["i1:0"]) == [2]
    assert session.partial_run(first, {"p2:0": ONE}, ["sum:0"]) == [2]
    assert session.partial_run(second, {"p2:0": TWO}, ["sum:0"]) == [4]


@pytest.mark.parametrize(
    ("case", "feeds", "fetches"),
    [
        ("part fed again", {"p1:0": TWO}, []),
        ("part fetched again", {}, ["i1:0"]),
        ("part that needs more feeds", {}, ["sum:0"]),
        ("part with a feed that was not set up", {"sum:0": ONE}, []),
        ("part with a fetch that was not set up", {"p2:0": ONE}, ["i2:0"]),
    ],
)
def test_a_wrong_part_changes_nothing(
    target: Target, case: str, feeds: dict, fetches: list
) -> None:
    session = target.session(two_inputs())
    handle = session.partial_run_setup(["p1:0", "p2:0"], ["i1:0", "sum:0"])
    session.partial_run(handle, {"p1:0": ONE}, ["i1:0"])
    with target.raises(case):
        session.partial_run(handle, feeds, fetches)
    if target.expected(case)[0] is not None:
        assert session.partial_run(handle, {"p2:0": TWO}, ["sum:0"]) == [3]


def test_parts_need_a_setup(target: Target) -> None:
    session = target.session(two_inputs())
    with target.raises("part without a setup"):
        session.partial_run("no such handle", {"p1:0": ONE}, [])
