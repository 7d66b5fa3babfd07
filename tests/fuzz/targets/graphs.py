"""Graphs of every room of kernels, run on numpy kernels: an answer, or an error of a client."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np

import protos as pb
from runtime.api import (
    FolderGate,
    RunRequest,
    SessionOptions,
    ThreadPool,
    new_session,
    set_tensor_limit,
)
from runtime.errors import DeadlineExceededError, OpError
from runtime.framework.tensor_codec import tensor_to_proto
from tests.conformance.case import Case, as_tensor, cases_of, families
from tests.fuzz.children import enter
from tests.fuzz.mutate_graphs import Hostile
from tests.fuzz.mutate_structure import mutate_structure
from tests.fuzz.steps import feeds_of, read_steps, show_steps, smaller_steps, step_of, write_steps
from tests.fuzz.target import Target, import_kernels, outcome_of

TENSOR_BYTES = 64 << 20
DEADLINE_SECONDS = 1.0  # most steps take a millisecond, but the machine may be busy
_LARGEST_ENCODED = 1 << 20  # bytes of values
_MORE_THREADS = 20  # than before, after a session has been closed
_UNTIL_THREADS_END = 5.0  # seconds
_LARGEST_CASE = 200_000  # bytes of a graph


class Graphs(Target):
    """Mutated conformance cases."""

    name = "graphs"
    inputs_a_child = 2000

    def __init__(self) -> None:
        self._cases: list[Case] = []
        self._pool: ThreadPool | None = None
        self._threads = 0

    def load(self) -> None:
        self._cases = [
            case
            for family in families()
            for case in cases_of(family)
            if case.graph.ByteSize() < _LARGEST_CASE
        ]
        import_kernels()

    def start(self) -> None:
        set_tensor_limit(TENSOR_BYTES)
        self._pool = ThreadPool("fuzz", 2)
        self._threads = threading.active_count()

    def make(self, random_state: random.Random) -> bytes:
        case = random_state.choice(self._cases)
        at = random_state.randrange(len(case.steps))
        made = hostile(case, at)
        others = [hostile(random_state.choice(self._cases), 0)]
        for _ in range(random_state.choice((0, 1, 1, 1, 2, 2, 3, 5))):
            mutate_structure(made, random_state, others)
        steps = [step_of(step.feeds, step.fetches, step.targets) for step in case.steps]
        steps[at] = step_of(made.feeds, made.fetches, made.targets)
        return write_steps(made.graph, steps)

    def run(self, data: bytes) -> str:
        graph, steps = read_steps(data)
        outcome = self._outcome(graph, steps)
        return self._left_threads() or outcome

    def smaller(self, data: bytes) -> Iterator[bytes]:
        yield from smaller_steps(data)

    def show(self, data: bytes) -> str:
        return show_steps(data)

    def _outcome(self, graph: pb.GraphDef, steps: Sequence[pb.RunStepRequest]) -> str:
        session = new_session(
            SessionOptions(files=FolderGate(()), clusters="off", max_graph_nodes=10_000)
        )
        outcome = "empty"
        try:
            session.create(graph)
            for step in [*steps, *steps[-1:]]:  # a step that runs again has another plan
                request = RunRequest(
                    feeds_of(step),
                    list(step.fetch),
                    list(step.target),
                    deadline=time.monotonic() + DEADLINE_SECONDS,
                    pool=self._pool,
                )
                values = session.run_async(request).result()
                outcome = _encoded(values)
        except DeadlineExceededError as error:
            outcome = outcome_of(error)
        except OpError as error:
            return outcome_of(error)
        finally:
            session.close()
            self._wait_for_kernels()
        return outcome

    def _wait_for_kernels(self) -> None:
        """Wait until the step has really ended; the parent limits how long."""
        assert self._pool is not None
        if self._pool.stats().tasks:
            enter("after the end of the step")
        while self._pool.stats().tasks:
            time.sleep(0.001)

    def _left_threads(self) -> str:
        limit = self._threads + _MORE_THREADS
        until = time.monotonic() + _UNTIL_THREADS_END
        while threading.active_count() > limit:
            if time.monotonic() > until:
                self._threads = threading.active_count()
                return f"THREADS {self._threads}"
            time.sleep(0.01)
        return ""


def hostile(case: Case, at: int) -> Hostile:
    """Return a case and its step `at`, to be mutated."""
    step = case.steps[at]
    graph = pb.GraphDef()
    graph.CopyFrom(case.graph)
    feeds = {name: as_tensor(value) for name, value in step.feeds.items()}
    return Hostile(graph, feeds, list(step.fetches), list(step.targets))


def _encoded(values: Sequence[object]) -> str:
    arrays = [each for each in values if isinstance(each, np.ndarray | np.generic)]
    if sum(each.nbytes for each in arrays) < _LARGEST_ENCODED:
        for each in arrays:
            tensor_to_proto(np.asarray(each))
    return "answer"
