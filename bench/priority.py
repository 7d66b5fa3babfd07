"""Measure how much low-priority work delays normal steps.

    python -m bench.priority [--seconds 60] [--model DIR] [--in-caller]

An open loop runs normal steps (a tiny MLP at 30 % of one thread's capacity) on the normal pool,
each handed over to a thread of the pool (`run_async`). With `--in-caller` they are steps of
`Session.run`, which the thread that waits for them runs itself. Meanwhile the low-priority pool is
kept full with a chain of 1,000 small ops, with 512² MatMuls and, if DIR is given, with that model.
The same work on a second pool of normal priority is measured for comparison. Further rows run
beside a separate process at nice 19 that counts, multiplies matrices, or runs the same chain or
model, the latter as its own low-priority work: the delay that work of other programs causes. The
rows take turns of a few seconds, so that a disturbance by the machine affects all of them.

The table gives p50 and p99 of the normal steps and the ratio of p99 to that of the idle row, then
the median and the lower quartile of the p99 of each tenth of a second, and the p99 of those tenths
in which no core of the machine stood still (bench/stalls.py).

First a table on isolation is printed: while a step blocks the only thread of one pool, how long
steps take on another pool, and how long a second step of the blocked pool waits.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

from bench.measure import median, open_loop, write_json
from bench.open_sessions import feeds_of
from bench.stalls import figures_in_turns
from bench.tables import latency_table, table
from runtime.api import (
    KernelDef,
    OpError,
    RunRequest,
    RuntimeSession,
    SessionOptions,
    ThreadPool,
    load_saved_model,
    new_session,
)
from runtime.foundation.kept_memory import keep_freed_memory
from tests.conformance.case import Graph

LOAD = 0.3  # fraction of one thread's capacity
BLOCKED_SECONDS = 0.5
WARM_UP_SECONDS = 2.0  # of each row
# Programs of a separate process; each prints a line when its work begins.
COUNTING = """
print(flush=True)
while True: pass
"""
MULTIPLYING = """
import numpy as np
value = x = np.eye(512, dtype=np.float32)
print(flush=True)
while True: value = value @ x
"""
CHAINING = """
from bench.priority import ThreadPool, chain_of_small_ops
submit, pool = chain_of_small_ops(), ThreadPool("chain", 1)
submit(pool).result()
print(flush=True)
while True: submit(pool).result()
"""
RUNNING = """
from bench.engines.warm_up import warm_up
from bench.priority import ThreadPool, model
submit, pool = model({directory!r}), ThreadPool("model", 1, low_priority=True)
warm_up(lambda: submit(pool).result())
print(flush=True)
while True: submit(pool).result()
"""
Submit = Callable[[ThreadPool], object]


def tiny_mlp() -> tuple[RuntimeSession, dict[str, np.ndarray], str]:
    graph = Graph()
    rng = np.random.default_rng(1)
    value = graph.placeholder("float32", "x")
    for index, (rows, columns) in enumerate([(64, 64), (64, 64), (64, 10)]):
        weights = rng.normal(size=(rows, columns)).astype(np.float32)
        value = graph.add("MatMul", value, weights, name=f"m{index}")[0]
        value = graph.add("Relu", value, name=f"r{index}")[0]
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    return session, {"x": np.ones((1, 64), np.float32)}, value[0]


def chain_of_small_ops() -> Submit:
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for index in range(1000):
        value = graph.add("AddV2", value, np.float32([1]), name=f"n{index}")[0]
    return submitter(graph, {"x": np.float32([1])}, value[0])


def matrix_products() -> Submit:
    graph = Graph()
    x = value = graph.placeholder("float32", "x")
    for index in range(20):
        value = graph.add("MatMul", value, x, name=f"m{index}")[0]
    return submitter(graph, {"x": np.eye(512, dtype=np.float32)}, value[0])


def model(directory: str) -> Submit:
    bundle = load_saved_model(SessionOptions(), None, directory, ["serve"])
    feeds, fetches = feeds_of(bundle)
    return lambda pool: bundle.session.run_async(RunRequest(feeds, fetches, pool=pool))


def name_of_model(folder: pathlib.Path) -> str:
    """Return the name of a model in this folder, which may be that of one version."""
    return folder.parent.name if folder.name.isdigit() else folder.name


def submitter(graph: Graph, feeds: dict[str, np.ndarray], fetch: str) -> Submit:
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    return lambda pool: session.run_async(RunRequest(feeds, [fetch], pool=pool))


def isolation(normal: ThreadPool, low: ThreadPool) -> list[list[str]]:
    """Return table rows: step times on each pool while a synchronous kernel blocks the low one."""
    blocked, go_on = threading.Event(), threading.Event()

    def block(_: object) -> np.ndarray:
        blocked.set()
        go_on.wait()
        return np.array(b"done", object)

    graph = Graph()
    text = graph.placeholder("string", "text")
    graph.add("StringUpper", text, name="block")
    graph.add("StringLower", text, name="quick")
    session = new_session(SessionOptions(kernels=[KernelDef("StringUpper", block)]))
    session.create(graph.graph_def)
    feeds = {"text": np.array(b"X", object)}

    def quick(pool: ThreadPool) -> RunRequest:
        return RunRequest(feeds, ["quick"], pool=pool)

    first = session.run_async(RunRequest(feeds, ["block"], pool=low))
    blocked.wait()
    started = time.perf_counter()
    second = session.run_async(quick(low))
    times = []
    while time.perf_counter() - started < BLOCKED_SECONDS:
        run = time.perf_counter()
        session.run_async(quick(normal)).result()
        times.append(time.perf_counter() - run)
    go_on.set()
    second.result()
    waited = time.perf_counter() - started
    first.result()
    each = f"{median(times) * 1e3:.3f}, {max(times) * 1e3:.2f}"
    return [
        ["steps on another pool, each (p50, largest)", each],
        ["a second step on the blocked pool", f"{waited * 1e3:.0f}"],
    ]


def normal_steps(normal: ThreadPool, in_caller: bool) -> Callable[[], object]:
    """Return a function that runs one normal step, `in_caller` or in a thread of `normal`."""
    session, feeds, fetch = tiny_mlp()
    if in_caller:
        return lambda: session.run(feeds, [fetch])
    return lambda: session.run_async(RunRequest(feeds, [fetch], pool=normal)).result()


@contextlib.contextmanager
def kept_full(submit: Submit, pool: ThreadPool) -> Iterator[None]:
    """Let two threads keep `pool` full inside the context."""
    stop = threading.Event()

    def keep_full() -> None:
        while not stop.is_set():
            try:
                submit(pool).result()  # type: ignore[attr-defined]
            except OpError:
                return

    threads = [threading.Thread(target=keep_full, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def another_process(work: str) -> Iterator[None]:
    """Let an unrelated process at nice 19 keep a processor busy inside the context."""
    program = f"import os; os.nice(19)\n{work}"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError(f"the program has ended before its work began: {work}")
            yield
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of each row")
    parser.add_argument("--model", help="a SavedModel to use as low-priority work")
    parser.add_argument("--in-caller", action="store_true", help="run the steps where one waits")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    keep_freed_memory()  # as the server does
    normal = ThreadPool("normal", 2)
    low = ThreadPool("low", 1, low_priority=True, own_process=True)
    equal = ThreadPool("equal", 1)
    work = {"1,000 small ops": chain_of_small_ops(), "512² MatMuls": matrix_products()}
    programs = {
        "another program that counts": COUNTING,
        "another program, 512² MatMuls": MULTIPLYING,
        "another program, 1,000 small ops": CHAINING,
    }
    if options.model:
        name = name_of_model(pathlib.Path(options.model))
        work[name] = model(options.model)
        programs[f"another program, {name}"] = RUNNING.format(directory=options.model)
    print(
        table([f"one step blocks a pool for {BLOCKED_SECONDS:g} s", "ms"], isolation(normal, low))
    )
    print(flush=True)
    rows: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
        "idle": contextlib.nullcontext,
    }
    for name, program in programs.items():
        rows[name] = functools.partial(another_process, program)
    for name, submit in work.items():
        for pool, how in ((low, "low priority"), (equal, "no priorities")):
            rows[f"{name}, {how}"] = functools.partial(kept_full, submit, pool)
    run = normal_steps(normal, options.in_caller)
    for begin in rows.values():  # warm up: compile the steps, start the pool's process
        with begin():
            open_loop(run, WARM_UP_SECONDS, WARM_UP_SECONDS / 100)
    gc.collect()
    gc.freeze()  # as the server does when a model is loaded
    figures = figures_in_turns(rows, run, options.seconds, LOAD)
    print(latency_table(figures))
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
