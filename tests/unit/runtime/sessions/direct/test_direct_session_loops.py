"""Steps that call functions in the caller's thread: loops of which models show what bounds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancelledError,
    DirectSession,
    InvalidArgumentError,
    RunRequest,
    SessionOptions,
    new_session,
)
from runtime.clusters.running.compile_queue import compile_queue
from runtime.executors.step import Executor, Step
from runtime.framework.cancellation import CancellationManager
from runtime.sessions.direct import direct_session as direct_sessions
from runtime.sessions.direct import short_step as short_steps
from runtime.sessions.runtime_session import Tensor
from tests.unit.runtime.clusters.loops.recurrent_graphs import Options, X, graph_of, inputs, lstm
from tests.unit.runtime.executors.clustered_steps import eager  # noqa: F401
from tests.unit.runtime.sessions.graphs import in_caller

pytest.importorskip("onnxruntime")

SECONDS = 30  # to wait for a step or for the compile queue
SHORT = 1e-4


class Loop:
    """A session that runs a loop: the stacked outputs of an LSTM."""

    def __init__(self, options: Options | None = None) -> None:
        graph, (self.fetch, *_) = graph_of(lstm, options)
        session = new_session(SessionOptions(config=pb.ConfigProto(), clusters="auto"))
        assert isinstance(session, DirectSession)
        self.session = session
        self.session.create(graph)

    def request(self) -> RunRequest:
        return RunRequest({X: inputs()}, [self.fetch])

    def run(self) -> np.ndarray:
        (value,) = self.session.run_async(self.request()).result(SECONDS)
        assert isinstance(value, np.ndarray)
        return value

    def compile(self) -> None:
        """Run until nothing is left to compile, and let the step look short."""
        for _ in range(12):
            self.run()
            assert compile_queue.wait_until_idle(SECONDS)
        self.executor.duration.seconds = SHORT

    @property
    def executor(self) -> Executor:
        return self.session._graph.compiled(self.request()).executor


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.session.close()


@pytest.mark.usefixtures("eager")
def test_a_loop_runs_in_the_caller_when_a_model_shows_what_bounds_it(loop: Loop) -> None:
    """The model has an iteration for each element of a list; there is none of another loop."""
    expected = loop.run()
    loop.executor.duration.seconds = SHORT
    assert loop.session.run_if_short(loop.request()) is None
    loop.compile()
    assert loop.executor.is_bounded and not loop.executor.is_steady
    values = loop.session.run_if_short(loop.request())
    assert values is not None
    np.testing.assert_allclose(values[0], expected, rtol=1e-5)


@pytest.mark.usefixtures("eager")
def test_a_loop_that_no_model_computes_does_not_run_in_the_caller() -> None:
    loop = Loop(Options(limit=lambda steps: steps - 1))
    loop.compile()
    assert not loop.executor.is_bounded
    assert loop.session.run_if_short(loop.request()) is None
    loop.session.close()


def run_in_caller(loop: Loop) -> list[Tensor]:
    return loop.session.run({X: inputs()}, [loop.fetch], options=in_caller())


def run_if_short(loop: Loop) -> list[Tensor] | None:
    return loop.session.run_if_short(loop.request())


def run_short_step(loop: Loop) -> list[Tensor] | None:
    step = loop.session.short_step([X], [loop.fetch])
    assert step is not None
    return step.run([inputs()])


@pytest.mark.parametrize("run", [run_in_caller, run_if_short, run_short_step])
def test_a_function_that_fails_in_the_caller_leaves_the_session(
    run: Callable[[Loop], object], loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its executor cancels what the same step does besides."""
    expected, executor = loop.run(), loop.executor
    session_wide = loop.session._cancellation
    seen: list[CancellationManager] = []

    def fail(step: Step, arguments: Any) -> list[Tensor]:
        seen.append(step.cancellation)
        step.cancellation.cancel(CancelledError("another function failed"))
        raise InvalidArgumentError("a function failed")

    with monkeypatch.context() as patch:
        patch.setattr(executor, "run", fail)
        for module in (direct_sessions, short_steps):
            patch.setattr(module, "is_short", lambda *_: True)
        with pytest.raises(InvalidArgumentError, match="a function failed"):
            run(loop)
    assert len(seen) == 1
    np.testing.assert_array_equal(loop.run(), expected)
    assert not session_wide.is_cancelled
    assert not session_wide._callbacks  # the step has left nothing in it


def test_a_loop_in_the_caller_ends_when_the_session_closes(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.run()

    def close_meanwhile(step: Step, arguments: Any) -> list[Tensor]:
        loop.session._cancellation.cancel(CancelledError("closed"))
        step.cancellation.check()
        return []

    monkeypatch.setattr(loop.executor, "run", close_meanwhile)
    with pytest.raises(CancelledError, match="closed"):
        run_in_caller(loop)
