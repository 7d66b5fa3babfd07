"""What steps leave behind: variables, queues, and who shares them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from runtime.api import RunRequest, UnimplementedError, reset
from tests.integration.targets.graphs import counter, queue
from tests.integration.targets.target import Target, fresh


def test_variables_live_between_steps(target: Target) -> None:
    session = target.session(counter(fresh("v")))
    with target.raises("variable that was not initialised"):
        session.run({}, ["read:0"])
    session.run({}, [], ["init"])
    session.run({}, [], ["add"])
    session.run({}, [], ["add"])
    assert session.run({}, ["read:0"]) == [12]


def test_who_shares_variables(target: Target) -> None:
    name = fresh("v")
    first, second = target.session(counter(name)), target.session(counter(name))
    first.run({}, [], ["init"])
    if not target.is_master:
        with target.raises("variable that was not initialised"):
            second.run({}, ["read:0"])
        return
    second.run({}, [], ["add"])
    assert first.run({}, ["read:0"]) == [11]
    first.close()
    assert target.session(counter(name)).run({}, ["read:0"]) == [11]


def test_an_isolated_session_shares_nothing(target: Target) -> None:
    name = fresh("v")
    target.session(counter(name)).run({}, [], ["init"])
    isolated = target.session(counter(name), isolate_session_state=True)
    with target.raises("variable that was not initialised"):
        isolated.run({}, ["read:0"])


def test_containers_keep_names_apart(target: Target) -> None:
    name = fresh("v")
    plain = target.session(counter(name))
    plain.run({}, [], ["init"])
    contained = target.session(counter(name, container=fresh("c")))
    with target.raises("variable that was not initialised"):
        contained.run({}, ["read:0"])


def test_queues_hand_values_from_step_to_step(target: Target) -> None:
    session = target.session(queue(fresh("q")))
    for number in (1, 2):
        session.run({"value:0": np.float32(number)}, [], ["enqueue"])
    assert session.run({}, ["size:0"]) == [2]
    assert session.run({}, ["dequeue:0"]) == [1]
    session.run({}, [], ["close"])
    assert session.run({}, ["dequeue:0"]) == [2]
    with target.raises("dequeue from a closed queue"):
        session.run({}, ["dequeue:0"])


def test_a_step_waits_for_another(target: Target) -> None:
    session = target.session(queue(fresh("q")))
    waiting = session.run_async(RunRequest({}, ["dequeue:0"]))
    fed = threading.Thread(target=session.run, args=({"value:0": np.float32(7)}, [], ["enqueue"]))
    fed.start()
    assert waiting.result(30) == [7]
    fed.join()


def test_reset_clears_containers_and_closes_sessions(target: Target) -> None:
    if target.name in ("http", "ray"):
        with pytest.raises(UnimplementedError, match="share no resources to reset"):
            reset(target.address)
        return
    name = fresh("v")
    session = target.session(counter(name))
    session.run({}, [], ["init"])
    reset(target.address)
    with target.raises("run after a reset"):
        session.run({}, ["read:0"])
    with target.raises("variable that was not initialised"):
        target.session(counter(name)).run({}, ["read:0"])
