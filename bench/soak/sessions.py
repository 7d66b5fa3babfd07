"""Load test of sessions in one process: many threads run, extend, close and cancel at random.

    python -m bench.soak.sessions [--seconds 60] [--threads 8]

A thread may close a session that another thread is using. Prints how each kind of work ended, the
resident memory after the warm-up and at the end, and the threads that did not end. Exits with 1
if there was an undocumented error or a thread is left.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import gc
import itertools
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import protos as pb
from bench.measure import resident_bytes
from bench.tables import table
from runtime.api import (
    CancellationManager,
    CancelledError,
    DeadlineExceededError,
    DirectSession,
    OpError,
    RunRequest,
    SessionOptions,
    new_session,
)
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph

SLOTS = 4  # sessions that all threads share
WARM_UP = 0.2  # fraction of the time in which pools, caches and the allocator's arenas grow
JOIN_SECONDS = 10  # limit for a thread to end or a step to be cancelled
ONE = np.float32(1)
COMPILER = "cluster_compiler"  # the process may have one, which ends when it has compiled


@dataclasses.dataclass
class Report:
    """The result of a soak. `outcomes` counts (work, how it ended); `unexpected` must be empty."""

    outcomes: collections.Counter[tuple[str, str]]
    unexpected: list[str]
    bytes_after_warm_up: int
    bytes_at_end: int
    leaked_threads: list[str]

    @property
    def growth(self) -> int:
        """Bytes by which the resident memory grew after the warm-up."""
        return self.bytes_at_end - self.bytes_after_warm_up


def soak_graph() -> pb.GraphDef:
    """Return a graph of two arithmetic nodes, a variable and an empty queue."""
    graph = Graph()
    x = graph.placeholder("float32", "x")
    y = graph.add("AddV2", graph.add("Mul", x, np.float32(2))[0], ONE, name="y")[0]
    variable = graph.add("VarHandleOp", name="v", dtype=DataType.FLOAT, shape=(), shared_name="v")[
        0
    ]
    graph.add("AssignVariableOp", variable, y, name="assign", dtype=DataType.FLOAT)
    queue = graph.add("FIFOQueueV2", name="q", component_types=[DataType.FLOAT])[0]
    graph.add("QueueDequeueV2", queue, name="take", component_types=[DataType.FLOAT])
    return graph.graph_def


class Soak:
    """The shared sessions and the kinds of work on them; `work` may be called concurrently."""

    def __init__(self) -> None:
        self._graph = soak_graph()
        self._numbers = itertools.count()
        self._slots = [self._open() for _ in range(SLOTS)]
        self._lock = threading.Lock()  # guards writes to the attributes of this object
        self.outcomes: collections.Counter[tuple[str, str]] = collections.Counter()
        self.unexpected: list[str] = []

    def _open(self) -> DirectSession:
        """Return a new session; every third has per-session threads."""
        own = next(self._numbers) % 3 == 0
        config = pb.ConfigProto(use_per_session_threads=own, inter_op_parallelism_threads=2)
        session = new_session(SessionOptions(config=config))
        assert isinstance(session, DirectSession)
        session.create(self._graph)
        return session

    def run(self, session: DirectSession) -> None:
        assert session.run({"x": ONE}, ["y"], ["assign"]) == [3]

    def extend(self, session: DirectSession) -> None:
        name = f"n{next(self._numbers)}"
        node = pb.NodeDef(name=name, op="Neg", input=["y"])
        node.attr["T"].type = pb.DT_FLOAT
        session.extend(pb.GraphDef(node=[node]))
        assert session.run({"x": ONE}, [name]) == [-3]

    def miss_a_deadline(self, session: DirectSession) -> None:
        session.run({}, ["take"], (), pb.RunOptions(timeout_in_ms=2))

    def cancel(self, session: DirectSession) -> None:
        cancellation = CancellationManager()
        waiting = session.run_async(RunRequest({}, ["take"], cancellation=cancellation))
        cancellation.cancel(CancelledError("No longer wanted"))
        waiting.result(JOIN_SECONDS)

    def close(self, session: DirectSession) -> None:
        """Replace a session by a new one while other threads may use it, then destroy it."""
        waiting = session.run_async(RunRequest({}, ["take"]))
        with self._lock:
            if session in self._slots:  # another thread may have replaced it already
                self._slots[self._slots.index(session)] = self._open()
        session.destroy()
        waiting.result(JOIN_SECONDS)

    def work(self, seed: int, until: float) -> None:
        """Do random work until `time.monotonic()` reaches `until`."""
        choose = random.Random(seed)
        kinds: list[tuple[Callable[[DirectSession], None], tuple[type[OpError], ...]]] = [
            (self.run, ()),
            (self.extend, ()),
            (self.miss_a_deadline, (DeadlineExceededError,)),
            (self.cancel, (CancelledError,)),
            (self.close, (CancelledError,)),
        ]
        while time.monotonic() < until:
            ((kind, documented),) = choose.choices(kinds, weights=(60, 15, 10, 10, 5))
            self._try(kind, documented, choose.choice(self._slots))

    def _try(
        self,
        kind: Callable[[DirectSession], None],
        documented: tuple[type[OpError], ...],
        session: DirectSession,
    ) -> None:
        name, ended = kind.__name__, "done"
        try:
            kind(session)
        except documented as error:
            ended = error.code.name
        except CancelledError as error:  # documented for all work on a closed session
            ended = error.code.name
            if not session.is_closed:
                self._note(f"{name}: {error}")
        except BaseException as error:
            self._note(f"{name}: {type(error).__name__}: {error}")
        with self._lock:
            self.outcomes[name, ended] += 1

    def _note(self, text: str) -> None:
        with self._lock:
            self.unexpected.append(text)

    def end(self) -> None:
        """Destroy the remaining sessions."""
        for session in self._slots:
            session.destroy()


def soak(seconds: float, threads: int, seed: int) -> Report:
    """Run `threads` threads of random work for `seconds`."""
    # Starts the process-wide pool and timer, whose threads live on and are not counted as left.
    process = new_session(SessionOptions())
    process.create(soak_graph())
    process.run({"x": ONE}, ["y"], (), pb.RunOptions(timeout_in_ms=60_000))
    before = set(threading.enumerate())
    # A pool may replace a thread that is stuck, so threads are compared by their names.
    names_before = _names(before)
    state = Soak()
    until = time.monotonic() + seconds
    workers = [
        threading.Thread(target=state.work, args=(seed + index, until)) for index in range(threads)
    ]
    for worker in workers:
        worker.start()
    time.sleep(seconds * WARM_UP)
    gc.collect()
    warm = resident_bytes()
    for worker in workers:
        worker.join()
    state.end()
    process.close()
    left = set(threading.enumerate()) - before
    deadline = time.monotonic() + JOIN_SECONDS
    for thread in left:
        thread.join(max(0, deadline - time.monotonic()))
    gc.collect()
    leaked = _names(threading.enumerate()) - names_before
    leaked.pop(COMPILER, None)
    leaked_threads = [*leaked.elements()]
    return Report(state.outcomes, state.unexpected, warm, resident_bytes(), leaked_threads)


def _names(threads: Iterable[threading.Thread]) -> collections.Counter[str]:
    return collections.Counter(thread.name for thread in threads)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    report = soak(options.seconds, options.threads, options.seed)
    rows = [[*key, count] for key, count in sorted(report.outcomes.items())]
    print(table(["work", "ended", "times"], rows))
    print(
        f"\nresident: {report.bytes_after_warm_up / 1e6:.1f} MB after warm-up, "
        f"{report.bytes_at_end / 1e6:.1f} MB at the end; "
        f"threads left: {report.leaked_threads or 'none'}; "
        f"undocumented errors: {report.unexpected or 'none'}"
    )
    return 1 if report.unexpected or report.leaked_threads else 0


if __name__ == "__main__":
    sys.exit(main())
