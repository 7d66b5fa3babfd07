"""Comparison of ops in several worker processes.

Guarantees: every op has a report. If a worker crashes or takes too long for an op, the report says
so and the worker is replaced.
"""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection

from runtime.api import set_tensor_limit
from tools.oracle_comparison.comparison import Report, Request, compare_op
from tools.oracle_comparison.reference import Reference

MAX_TENSOR = 1 << 30  # bytes
# Seconds for one op. A step of this runtime that cannot be interrupted ends with its worker; the
# time of TensorFlow is bounded by `reference`.
TIMEOUT = 900


def in_this_process(reference: Reference, ops: Sequence[str], request: Request) -> Iterator[Report]:
    """Compare the ops in sequence, and close the reference."""
    set_tensor_limit(MAX_TENSOR)
    for op in ops:
        yield compare_op(reference, op, request)
    reference.close()


def in_parallel(start: Callable[[], Worker], ops: Sequence[str], jobs: int) -> Iterator[Report]:
    """Yield reports in the order of their completion; `jobs` threads each run a worker."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for op in ops:
        waiting.put(op)
    ready: queue.SimpleQueue[Report] = queue.SimpleQueue()
    threads = [
        threading.Thread(target=_attend, args=(start, waiting, ready), daemon=True)
        for _ in range(min(jobs, len(ops)))
    ]
    for thread in threads:
        thread.start()
    for _ in ops:
        yield ready.get()
    for thread in threads:
        thread.join()


def _attend(
    start: Callable[[], Worker],
    waiting: queue.SimpleQueue[str],
    ready: queue.SimpleQueue[Report],
) -> None:
    """Send the waiting ops to a worker in sequence; replace the worker when it fails."""
    worker = None
    while True:
        try:
            op = waiting.get_nowait()
        except queue.Empty:
            break
        worker = worker or start()
        report = worker.ask(op)
        if isinstance(report, str):
            worker.stop()
            worker, report = None, Report(op, lines=[f"{op}: {report}"])
        ready.put(report)
    if worker is not None:
        worker.stop()


class Worker:
    """A process that compares ops in sequence and owns a TensorFlow process."""

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        """Start the process: `work` receives ops from a pipe, its first argument, and replies."""
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=work, args=(other, *arguments))
        self._process.start()
        other.close()

    def ask(self, op: str) -> Report | str:
        """Return the op's report, or why there is none."""
        try:
            self._pipe.send(op)
            if not self._pipe.poll(TIMEOUT):
                return f"not compared: no end in {TIMEOUT} s"
            report: Report | str = self._pipe.recv()
        except (EOFError, OSError):
            return "not compared: it ended the process"
        return report

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def work(pipe: Connection, python: str, folder: pathlib.Path, request: Request) -> None:
    """Run a worker process; `python` is an interpreter with tensorflow."""
    set_tensor_limit(MAX_TENSOR)
    reference = Reference(python, folder)
    with tempfile.TemporaryDirectory() as elsewhere:
        os.chdir(elsewhere)  # random cases may write files with random names
        while True:
            op = pipe.recv()
            try:
                pipe.send(compare_op(reference, op, request))
            except Exception as error:
                pipe.send(f"not compared: {type(error).__name__}: {error}")
