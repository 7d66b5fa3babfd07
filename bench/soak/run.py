"""Runs a soak: clients, faults and reloads beside a sampler of what the server holds.

The clients work for a warm-up first; then they stop, the idle server's threads and descriptors are
counted, and everything starts again. In the end they stop as well, and the server must come back to
these counts. The warm-up has rounds until two of them end with the same counts.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import itertools
import pathlib
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from bench.soak.faults import Connections, Kills, Reloads, Repeated, TensorFlowClient
from bench.soak.grpc_work import GrpcWork
from bench.soak.judgement import Minute, Usage, faults
from bench.soak.model_work import ModelWork, Versions
from bench.soak.record import Counts, Record
from bench.soak.served import kinds_held, soak_server, usage
from bench.soak.session_work import SessionWork
from bench.soak.work import Worker
from tests.attacks.models import children_of
from tests.integration.server_process import ServerProcess

SAMPLE_SECONDS = 0.5
FAULT_LINES = 30  # of the log, with an error's traceback
TOGETHER = 32  # more than the threads of the executor
MAX_ROUNDS = 3  # of the warm-up
STEADY_SECONDS = 3  # without a change: the server is idle


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long a soak takes, and what takes part."""

    seconds: float
    warm_up_seconds: float = 60.0
    minute_seconds: float = 60.0  # of a row of the table
    clients: int = 2  # threads for small requests to models, sessions and gRPC, each
    reload_seconds: float = 15.0
    kill_seconds: float = 20.0
    settle_seconds: float = 120.0  # for threads and connections that are no longer needed to end
    oracle: str | None = None
    seed: int = 1


@dataclasses.dataclass
class Outcome:
    """The result of a soak."""

    minutes: list[Minute]
    start: Usage
    end: Usage
    notes: list[str]
    log_faults: list[str]  # of the server's log
    exit_code: int
    killed: int

    @property
    def faults(self) -> list[str]:
        """Why the soak failed."""
        found = faults(self.minutes, self.start, self.end)
        if self.log_faults:
            found.append(f"{len(self.log_faults)} faults in the server's log")
        if self.exit_code:
            found.append(f"the server ended with {self.exit_code}")
        return found


class Part(Protocol):
    """What works between `start` and `stop`, any number of times."""

    def start(self) -> None: ...

    def ask_to_stop(self) -> None: ...

    def stop(self) -> None: ...


@contextlib.contextmanager
def working(parts: Sequence[Part]) -> Iterator[None]:
    """Let all parts work inside the context."""
    begun: list[Part] = []
    try:
        for part in parts:
            part.start()
            begun.append(part)
        yield
    finally:
        for part in begun:
            part.ask_to_stop()
        for part in begun:
            part.stop()


def parts_of(
    plan: Plan, server: ServerProcess, base: pathlib.Path, record: Record, kills: Kills
) -> tuple[list[Part], Connections, Part]:
    """Return the parts of a soak, the connections that one leaves open, and the part that needs
    the child process.
    """
    address, target = server.http_address, server.grpc_address
    versions, seeds = Versions(), itertools.count(plan.seed * 1000)
    parts: list[Part] = []
    for _ in range(plan.clients):
        models, sessions = ModelWork(next(seeds), versions), SessionWork(next(seeds), address)
        grpc = GrpcWork(next(seeds), target, record)
        parts += [
            Worker(record, address, next(seeds), models.small),
            Worker(record, address, next(seeds), sessions.kinds, sessions.end),
            Worker(record, address, next(seeds), grpc.kinds, grpc.end),
        ]
    products = SessionWork(next(seeds), address)
    heavy = Worker(record, address, next(seeds), products.heavy, products.end)
    connections = Connections(address, next(seeds))
    reloads = Reloads(address, base, versions)
    parts += [
        Worker(record, address, next(seeds), ModelWork(next(seeds), versions).dense),
        Worker(record, address, next(seeds), ModelWork(next(seeds), versions).large),
        heavy,
        Repeated(record, "faults: half-open", 1, connections.open_some),
        Repeated(record, "faults: kill", plan.kill_seconds, kills.kill_one),
        Repeated(record, "faults: reload", plan.reload_seconds, reloads.reload),
    ]
    if plan.oracle:
        parts.append(TensorFlowClient(plan.oracle, target, record))
    return parts, connections, heavy


def soak(plan: Plan, report: Callable[[int, Minute], None]) -> Outcome:
    """Run a soak; `report` is called with the number of each minute that has ended."""
    record = Record()
    with soak_server() as (server, base):
        process_id = server.process.pid
        kills = Kills(process_id, record, plan.seed)
        parts, connections, heavy = parts_of(plan, server, base, record, kills)
        start = warmed_up(plan, parts, connections, heavy, server)
        before = record.take()  # what failed in the warm-up has failed
        with working(parts):
            minutes = list(sampled(plan, server, record, report))
        connections.close()
        minutes[-1].counts.add(record.take())  # what was under way
        minutes[0].counts.add(dataclasses.replace(before, requests=collections.Counter()))
        end = idle(process_id, plan.settle_seconds, heavy, start)
        with contextlib.suppress(OSError):
            server.client.close()
        code = server.stop()
        wrong = faults_in(server.log)
    return Outcome(minutes, start, end, record.notes, wrong, code, kills.killed)


def sampled(
    plan: Plan, server: ServerProcess, record: Record, report: Callable[[int, Minute], None]
) -> Iterator[Minute]:
    """Yield each minute of the soak when it has ended."""
    pid, begin = server.process.pid, time.monotonic()
    health = Health(server.http_address)
    try:
        for number in itertools.count():
            minute = Minute(Counts(), [])
            end = min(begin + (number + 1) * plan.minute_seconds, begin + plan.seconds)
            while not minute.samples or time.monotonic() < end:
                time.sleep(min(SAMPLE_SECONDS, plan.minute_seconds / 4))
                minute.samples.append(usage(pid, health.slowest()))
            minute.counts = record.take()
            report(number, minute)
            yield minute
            if end >= begin + plan.seconds:
                return
    finally:
        health.stop()


def faults_in(log: Sequence[str]) -> list[str]:
    """Return the errors of a log, each with the lines that follow it."""
    starts = [number for number, line in enumerate(log) if " ERROR " in line]
    return ["".join(log[start : start + FAULT_LINES]).rstrip() for start in starts]


class Health:
    """A thread that requests /healthz ten times a second and notes the slowest answer."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._slowest = 0.0  # written by the thread; a value that is lost counts next time
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def slowest(self) -> float:
        """Return the seconds of the slowest answer since the last call."""
        slowest, self._slowest = self._slowest, 0.0
        return slowest

    def stop(self) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            begun = time.monotonic()
            with urllib.request.urlopen(f"{self._address}/healthz", timeout=60) as answer:
                answer.read()
            self._slowest = max(self._slowest, time.monotonic() - begun)


def warmed_up(
    plan: Plan,
    parts: Sequence[Part],
    connections: Connections,
    heavy: Part,
    server: ServerProcess,
) -> Usage:
    """Let all parts work until the idle server holds no more than after the round before.

    Pools and the compiler of clusters start their threads when they are first needed.
    """
    held, address, process_id = Usage(0, 0, 0), server.http_address, server.process.pid
    for _ in range(MAX_ROUNDS):
        with working(parts):
            time.sleep(plan.warm_up_seconds)
            if plan.settle_seconds:
                fill_pools(address)
        connections.close()
        before, held = held, idle(process_id, plan.settle_seconds, heavy)
        if (held.threads, held.descriptors) == (before.threads, before.descriptors):
            break
        if not plan.settle_seconds:
            break
    return held


def fill_pools(address: str) -> None:
    """Send large bodies all at once: the event loop's executor starts its threads on demand."""
    body = b'{"instances": [' + b"1.5, " * 200_000 + b"1.5]}"
    url = f"{address}/v1/models/half_plus_two:predict"
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as threads:
        for _ in range(2):
            list(threads.map(lambda _: urllib.request.urlopen(url, body).read(), range(TOGETHER)))


def idle(process_id: int, seconds: float, heavy: Part, wanted: Usage | None = None) -> Usage:
    """Return what the server holds once it is steady, after at most `seconds`.

    If `wanted` is given, it is steady when it holds no more than that. The child process that was
    killed starts again with the next long step, so `heavy` works until it has: the child belongs
    to what the server holds.
    """
    give_up = time.monotonic() + seconds
    if seconds:
        with working([heavy]):
            while not children_of(process_id) and time.monotonic() < give_up:
                time.sleep(SAMPLE_SECONDS)
    now, since = usage(process_id), time.monotonic()
    while time.monotonic() < give_up:
        time.sleep(0.1)
        before, now = now, usage(process_id)
        if (now.threads, now.descriptors) != (before.threads, before.descriptors):
            since = time.monotonic()
        is_steady = time.monotonic() - since > STEADY_SECONDS
        if wanted is None and is_steady:
            break
        if wanted and now.threads <= wanted.threads and now.descriptors <= wanted.descriptors:
            break
    return dataclasses.replace(now, names=kinds_held(process_id))
