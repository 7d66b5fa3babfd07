"""Runs a mixed load: clients and a probe, while one event happens after the other."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.mixed_load.clients import BalancedClient, Balancer, FrontClient, ReadyPoll, Versions
from bench.mixed_load.events import (
    DRAIN,
    LOAD,
    RELOAD,
    UNLOAD,
    USE,
    ChangingModel,
    Event,
    Events,
    LargeModelCalls,
)
from bench.mixed_load.models import CHANGING, write_changing, write_large
from bench.mixed_load.probe import Probe
from bench.mixed_load.second_server import SecondServer
from bench.mixed_load.sender import PREDICTIONS, SESSIONS, Address
from bench.mixed_load.tally import Tally
from bench.serving import ROOT
from bench.soak.run import Part, faults_in, working
from tests.integration.server_process import ServerProcess

EXAMPLES = ("half_plus_two", "counter")


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long a mixed load takes, and what takes part."""

    seconds: float
    clients: int = 2  # of each front, to the first server
    interval: float = 0.05  # seconds between two requests of a client
    probe_rate: float = 500.0  # tiny predictions per second whose latency counts
    megabytes: float = 500.0  # of the large model
    pause: float = 5.0  # seconds before each event
    uses: int = 10  # predictions of the large model


@dataclasses.dataclass
class Outcome:
    """The result: requests by front and code, latencies [n, 2] of the probe, events, faults.

    A latency is that of `bench.mixed_load.probe`. `running` is how many requests ran when the
    second server was told to drain, each time.
    """

    counts: dict[str, dict[str, int]]
    times: np.ndarray
    events: list[Event]
    running: list[int]
    faults: list[str]
    notes: list[str]


def mixed_load(plan: Plan, report: Callable[[str], None]) -> Outcome:
    """Run a mixed load; `report` is called with each kind of event when it begins."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        write_changing(folder / CHANGING, 1)
        large = write_large(folder / "large", plan.megabytes)
        server = stack.enter_context(first_server(folder))
        address = address_of(server)
        versions, balancer = Versions(), Balancer(address)
        second = SecondServer(balancer, tally, str(written(folder, "second", EXAMPLES[:1])))
        stack.callback(second.kill)
        calls = LargeModelCalls(address, large)
        stack.callback(calls.close)
        events = Events(tally)
        changing = ChangingModel(address, folder / CHANGING, versions)
        acts: dict[str, Callable[[], None]] = {
            RELOAD: changing.reload,
            LOAD: calls.load,
            USE: lambda: calls.use(plan.uses),
            UNLOAD: calls.unload,
            DRAIN: second.drain_and_restart,
        }
        probe = Probe(address, plan.probe_rate, folder / "times.npy", tally)
        with working(clients(plan, tally, address, versions, balancer)), probe.probing():
            happen(plan, events, acts, report)
        second.end()
        faults = ending_faults(server)
    return Outcome(
        tally.counts(), probe.times, events.seen, second.running, faults + second.faults,
        tally.notes,
    )  # fmt: skip


def happen(
    plan: Plan, events: Events, acts: dict[str, Callable[[], None]], report: Callable[[str], None]
) -> None:
    """Let the events happen, in their order, again and again, each at least once."""
    end = time.monotonic() + plan.seconds
    is_first = True
    while is_first or time.monotonic() < end:
        for kind, act in acts.items():
            time.sleep(plan.pause)
            report(kind)
            with events.event(kind):
                act()
        is_first = False
    time.sleep(plan.pause)


def clients(
    plan: Plan, tally: Tally, address: Address, versions: Versions, balancer: Balancer
) -> list[Part]:
    """Return the clients of every front, and what polls the second server."""
    first = [
        FrontClient(tally, address, front, versions, plan.interval)
        for front in (*PREDICTIONS, SESSIONS)
        for _ in range(plan.clients)
    ]
    balanced = [BalancedClient(tally, balancer, front, plan.interval) for front in PREDICTIONS]
    return [*first, *balanced, ReadyPoll(balancer)]


@contextlib.contextmanager
def first_server(folder: pathlib.Path) -> Iterator[ServerProcess]:
    """Run the server whose models come and go."""
    more: dict[str, Any] = {
        "admin": {"enabled": True, "model_folders": [str(folder)]},
        "model_poll_seconds": 0.2,
    }
    changing = {"name": CHANGING, "base_path": str(folder / CHANGING)}
    file = written(folder, "first", EXAMPLES, [changing], more)
    server = ServerProcess(f"--config={file}")
    try:
        for model in (*EXAMPLES, CHANGING):
            server.wait_for(f"Loaded version 1 of model {model}")
        yield server
    finally:
        server.end()


def written(
    folder: pathlib.Path,
    name: str,
    examples: tuple[str, ...],
    models: list[dict[str, str]] | None = None,
    more: dict[str, Any] | None = None,
) -> pathlib.Path:
    """Write the configuration of a server with some of the examples."""
    served = [{"name": each, "base_path": f"{ROOT}/examples/models/{each}"} for each in examples]
    file = folder / f"{name}.yaml"
    config = {"rest": {"host": "127.0.0.1"}, "models": [*served, *(models or [])], **(more or {})}
    file.write_text(json.dumps(config))
    return file


def address_of(server: ServerProcess) -> Address:
    """Return the ports of a server."""
    return Address(server.http_address, server.grpc_address.removeprefix("grpc://"))


def ending_faults(server: ServerProcess) -> list[str]:
    """Stop a server; return what went wrong in it."""
    code = server.stop()
    server.end()
    return [*faults_in(server.log), *([f"the server ended with {code}"] if code else [])]
