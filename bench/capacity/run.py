"""Fit the capacity formula to some configurations, and predict others with it.

    python -m bench.capacity --models DIR [--seconds 1.2] [--rounds 3] [--callers 16] [--json FILE]

`bench/capacity/formula.py` is the formula, docs/growing.md its use. Steps alone are measured
without a server (bench/engines, one thread). Two servers take turns: one with a process on one
core, where the load generator runs too, and one with a process on each of two cores, likewise. A
turn keeps `--callers` connections busy with one request each (bench/fronts/run.py; a mixture
divides them). What a request costs is the time of the cores without what the load generator used of
it, divided by the requests; figures are medians of the turns, with the configurations in turns.

Those of FITTED give the constants. Those of HELD_OUT are predicted: what the load generator used is
taken as it was measured, and of mixtures the shares. The last column is how far the prediction is
off; no row is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent import futures
from typing import Any, NamedTuple

from bench.capacity.formula import (
    BINARY,
    GRPC,
    JSON,
    Constants,
    Fitted,
    Seen,
    Work,
    fit,
    mixture_cost,
    per_second,
)
from bench.capacity.requests import Body, answer_to, call_of, half_plus_two, work_of
from bench.capacity.tables import capacity_tables
from bench.engines.warm_up import wait_until_idle
from bench.engines.worker_process import WorkerProcess
from bench.fronts.run import HALF, Call, turn
from bench.measure import median, write_json
from bench.processes import EXAMPLE, processor_seconds
from bench.serving import Served, runstep_server

CORES = 2
STEP_SECONDS = 0.7
WARM_UP_SECONDS = 1.0
SETTLED_SECONDS = 0.5


class Configuration(NamedTuple):
    """Requests that are sent together, and on how many cores, each with a process."""

    cores: int
    bodies: tuple[Body, ...]

    @property
    def name(self) -> str:
        """The requests in words."""
        return " + ".join(map(str, self.bodies))


TINY = {front: half_plus_two(front, 3) for front in (JSON, BINARY, GRPC)}
LARGE = {
    JSON: half_plus_two(JSON, 4000),
    BINARY: half_plus_two(BINARY, 150_000),
    GRPC: half_plus_two(GRPC, 150_000),
}
PLAIN = (half_plus_two(JSON, 3000, is_short=True), half_plus_two(JSON, 1200))
POOLED = {JSON: (Body("mlp", JSON), Body("gru", JSON)), GRPC: (Body("gru", GRPC),)}
LONG = Body("transformer", JSON)
CROWDED_STEPS = (Body("gru", JSON), LONG)
FITTED = (
    *(Configuration(1, (body,)) for body in (*TINY.values(), *PLAIN, *LARGE.values())),
    *(Configuration(1, (body,)) for bodies in POOLED.values() for body in bodies),
    Configuration(1, (LONG,)),
    *(Configuration(CORES, (body,)) for body in (TINY[JSON], *CROWDED_STEPS)),
)
HELD_OUT = (
    Configuration(1, (half_plus_two(JSON, 500),)),  # another size
    Configuration(1, (Body("lstm", JSON),)),  # other models
    Configuration(1, (Body("mlp", GRPC),)),  # and other fronts
    Configuration(1, (Body("mobilenet_v2", BINARY),)),
    Configuration(CORES, (half_plus_two(JSON, 500),)),  # two processes
    Configuration(CORES, (Body("mlp", JSON),)),
    Configuration(CORES, (Body("lstm", GRPC),)),
    Configuration(CORES, (Body("mobilenet_v2", BINARY),)),
    Configuration(CORES, (Body("mobilenet_v2", JSON),)),  # 1.6 MB
    Configuration(CORES, (half_plus_two(JSON, 3), Body("lstm", JSON))),  # mixtures
    Configuration(CORES, (Body("mlp", GRPC), Body("transformer", JSON))),
)


@dataclasses.dataclass
class Measured:
    """A configuration, its works, and the turns that it had so far.

    A turn is {"per_second", "per_processor_second", "client", "seconds"} and "share 0", ….
    """

    configuration: Configuration
    served: Served
    calls: list[Call]
    works: list[Work]
    turns: list[dict[str, float]] = dataclasses.field(default_factory=list)

    def figure(self, key: str) -> float:
        """Return the median of the turns."""
        return median([each[key] for each in self.turns])

    @property
    def seen(self) -> Seen:
        """The configuration as what it costs; it must have one kind of request."""
        (work,) = self.works
        return Seen(work, self.figure("seconds"))

    @property
    def parts(self) -> list[tuple[float, Work]]:
        """The share of each kind of request, and its work."""
        shares = [self.figure(f"share {number}") for number in range(len(self.works))]
        return [(each / sum(shares), work) for each, work in zip(shares, self.works, strict=True)]


@contextlib.contextmanager
def pinned(count: int, first: int = 0) -> Iterator[None]:
    """Let this thread, and what it starts, run on `count` cores only, from the `first` on."""
    before = os.sched_getaffinity(0)
    if len(before) < first + count:
        raise SystemExit(f"this needs {first + count} cores, and may use {len(before)}")
    os.sched_setaffinity(0, sorted(before)[first : first + count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def step_seconds(folders: Mapping[str, pathlib.Path]) -> dict[str, float]:
    """Return the seconds of a step of each model, alone, in one thread."""
    found = {}
    for name, folder in folders.items():
        with pinned(1), WorkerProcess(sys.executable, "runstep_clusters", folder, 1) as worker:
            worker.ask(warm_up=1)
            found[name] = median(worker.ask(block=1, seconds=STEP_SECONDS)["times"])
    return found


def one_turn(of: Measured, callers: int, seconds: float) -> dict[str, float]:
    """Return the figures of a turn of all calls together."""
    cores, count = of.configuration.cores, len(of.calls)
    with (
        pinned(cores),
        tempfile.TemporaryDirectory() as name,
        futures.ThreadPoolExecutor(count) as threads,
    ):
        folders = [pathlib.Path(name, str(number)) for number in range(count)]
        for folder in folders:
            folder.mkdir()
        before = processor_seconds(of.served.process_id)
        running = [
            threads.submit(turn, call, callers // count, seconds, folder)
            for call, folder in zip(of.calls, folders, strict=True)
        ]
        seen = [each.result() for each in running]
        used = processor_seconds(of.served.process_id) - before
    rate, client = (sum(each[key] for each in seen) for key in ("per_second", "client"))
    return {
        "per_second": rate,
        "per_processor_second": rate * seconds / used,
        "client": client,
        "seconds": (cores - client) / rate,
        **{f"share {number}": each["per_second"] / rate for number, each in enumerate(seen)},
    }


def warm_up(of: Measured, callers: int) -> None:
    """Load a configuration until its models are compiled."""
    one_turn(of, callers, WARM_UP_SECONDS)
    wait_until_idle(processor_time=lambda: processor_seconds(of.served.process_id))
    one_turn(of, callers, SETTLED_SECONDS)


def measure(
    folders: Mapping[str, pathlib.Path], callers: int, seconds: float, rounds: int
) -> dict[Configuration, Measured]:
    """Return all configurations with their turns."""
    steps = step_seconds(folders)
    config = {
        "models": [{"name": name, "base_path": str(path)} for name, path in folders.items()],
        "rest": {"host": "127.0.0.1", "timeout_ms": 0},
    }
    servers: dict[int, Served] = {}
    found: dict[Configuration, Measured] = {}
    with contextlib.ExitStack() as stack:
        for cores in (1, CORES):
            with pinned(cores):
                server = runstep_server({**config, "processes": cores})
                servers[cores] = stack.enter_context(server)
        for each in (*FITTED, *HELD_OUT):
            served = servers[each.cores]
            calls = [call_of(body, folders[body.model], served) for body in each.bodies]
            works = [
                work_of(body, call, answer_to(call), steps[body.model])
                for body, call in zip(each.bodies, calls, strict=True)
            ]
            found[each] = Measured(each, served, calls, works)
        for one in found.values():
            warm_up(one, callers)
        for _ in range(rounds):
            for one in found.values():
                one.turns.append(one_turn(one, callers, seconds))
    return found


def fitted(found: Mapping[Configuration, Measured]) -> Constants:
    """Return the constants of the machine, from the configurations of FITTED."""

    def seen(body: Body, cores: int = 1) -> Seen:
        return found[Configuration(cores, (body,))].seen

    return fit(
        Fitted(
            tiny={front: seen(body) for front, body in TINY.items()},
            large={front: seen(body) for front, body in LARGE.items()},
            plain=(seen(PLAIN[0]), seen(PLAIN[1])),
            pooled={front: [seen(each) for each in bodies] for front, bodies in POOLED.items()},
            long=seen(LONG),
            crowded=seen(TINY[JSON], CORES),
            crowded_steps=[seen(body, CORES) for body in CROWDED_STEPS],
        )
    )


def row_of(one: Measured, constants: Constants) -> dict[str, Any]:
    """Return the figures of a configuration, measured and predicted."""
    cores = one.configuration.cores
    cost = mixture_cost(constants, one.parts, cores)
    measured = one.figure("per_second")
    predicted = per_second(cost, cores - one.figure("client"))
    return {
        "name": one.configuration.name,
        "cores": cores,
        "shares": [share for share, _ in one.parts],
        "steps": [work.step for work in one.works],
        "kilobytes": [work.kilobytes for work in one.works],
        "per_second": measured,
        "per_processor_second": one.figure("per_processor_second"),
        "client": one.figure("client"),
        "seconds": one.figure("seconds"),
        "predicted_seconds": cost,
        "predicted_per_second": predicted,
        "error": predicted / measured - 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", type=pathlib.Path, required=True, help="folder of exported models"
    )
    parser.add_argument("--seconds", type=float, default=1.2, help="of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    names = {body.model for each in (*FITTED, *HELD_OUT) for body in each.bodies} - {HALF}
    folder = options.models.resolve()
    folders = {HALF: EXAMPLE, **{name: folder / name for name in sorted(names)}}
    found = measure(folders, options.callers, options.seconds, options.rounds)
    constants = fitted(found)
    figures = {
        "constants": dataclasses.asdict(constants),
        "fitted": [row_of(found[each], constants) for each in FITTED],
        "held_out": [row_of(found[each], constants) for each in HELD_OUT],
    }
    print(capacity_tables(figures))
    if options.json:
        write_json(options.json, figures)
