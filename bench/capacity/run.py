"""Fit the capacity formula to some configurations, and predict others with it.

    python -m bench.capacity --models DIR [--seconds 1.2] [--rounds 5] [--callers 16] [--json FILE]

`bench/capacity/formula.py` is the formula, docs/growing.md its use. Steps alone are measured
without a server (bench/engines, one thread), once in each round. Two servers take turns: one with a
process on one core, where the load generator runs too, and one with a process on each of two cores,
likewise. A turn keeps up to `--callers` connections busy with one request each, fewer where
requests take long (bench/fronts/run.py; a mixture divides them). What a request costs is the time
of the cores without what the load generator used of it, divided by the requests; figures are
medians of the turns, with the configurations in turns.

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
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent import futures
from typing import Any, NamedTuple

from bench.capacity.formula import (
    BINARY,
    GRPC,
    JSON,
    Constants,
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
STEP_SECONDS = 0.5  # in each round, for each model
WARM_UP_SECONDS = 1.0
SETTLED_SECONDS = 0.5
# Of the requests of a turn, those under way at its end, which don't count. If they would be more
# than this part, there are fewer callers, down to CALLERS_OF_CORE, and then the turn is longer.
MOST_UNDER_WAY = 0.03
CALLERS_OF_CORE = 4
_Size = tuple[str, int]  # a model, and how many rows a step has


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
# Steps of 8 rows of the GRU run on a pool on every machine, of one row only on slow ones.
STEPS = (
    *(Body(model, JSON) for model in ("mlp", "gru", "transformer")),
    Body("gru", GRPC),
    *(Body("gru", front, rows=8) for front in (BINARY, GRPC)),
)
LARGE_JSON = half_plus_two(JSON, 150_000)  # 1.5 MB, as the answer
IMAGE = Body("mobilenet_v2", JSON)  # 1.6 MB, for a short answer
CROWDED = (TINY[JSON], Body("gru", JSON), Body("transformer", JSON))
FITTED = (
    *(
        Configuration(1, (body,))
        for body in (*TINY.values(), *PLAIN, *LARGE.values(), *STEPS, LARGE_JSON, IMAGE)
    ),
    *(Configuration(CORES, (body,)) for body in CROWDED),
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
    Configuration(CORES, (IMAGE,)),
    Configuration(CORES, (LARGE_JSON,)),
    Configuration(CORES, (half_plus_two(JSON, 3), Body("lstm", JSON))),  # mixtures
    Configuration(CORES, (Body("mlp", GRPC), Body("transformer", JSON))),
)


@dataclasses.dataclass
class Measured:
    """A configuration, its works, and the turns that it had so far.

    The steps of the works are not known before the last turn.
    A turn is {"per_second", "per_processor_second", "client", "seconds"} and "share 0", …; it has
    `callers` and takes `turn_seconds`.
    """

    configuration: Configuration
    served: Served
    calls: list[Call]
    works: list[Work]
    callers: int
    turn_seconds: float
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


@contextlib.contextmanager
def steps_alone(
    folders: Mapping[str, pathlib.Path], sizes: Collection[_Size]
) -> Iterator[Callable[[], dict[_Size, float]]]:
    """Yield a function that returns the seconds of a step of each size, alone, in one thread."""
    with contextlib.ExitStack() as stack:
        with pinned(1):  # what is started here stays on that core
            workers = {
                name: stack.enter_context(
                    WorkerProcess(sys.executable, "runstep_clusters", folder, 1)
                )
                for name, folder in folders.items()
            }
            for name, rows in sorted(sizes):
                workers[name].ask(warm_up=rows)
        yield lambda: {
            (name, rows): median(workers[name].ask(block=rows, seconds=STEP_SECONDS)["times"])
            for name, rows in sizes
        }


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


def sized_turn(cost: float, cores: int, callers: int, seconds: float) -> tuple[int, float]:
    """Return the callers and the seconds of a turn, of whose requests few are under way at its end.

    `cost` is what a request takes of the cores, in seconds.
    """
    fewest = min(callers, CALLERS_OF_CORE * cores)
    callers = min(callers, max(fewest, int(MOST_UNDER_WAY * seconds * cores / cost)))
    return callers, max(seconds, callers * cost / cores / MOST_UNDER_WAY)


def warm_up(of: Measured) -> None:
    """Load a configuration until its models are compiled; set what its turns are."""
    one_turn(of, of.callers, WARM_UP_SECONDS)
    wait_until_idle(processor_time=lambda: processor_seconds(of.served.process_id))
    cores = of.configuration.cores
    fewest = min(of.callers, CALLERS_OF_CORE * cores)
    cost = one_turn(of, fewest, SETTLED_SECONDS)["seconds"]
    of.callers, of.turn_seconds = sized_turn(cost, cores, of.callers, of.turn_seconds)


def measure(
    folders: Mapping[str, pathlib.Path], callers: int, seconds: float, rounds: int
) -> dict[Configuration, Measured]:
    """Return all configurations with their turns."""
    config = {
        "models": [{"name": name, "base_path": str(path)} for name, path in folders.items()],
        "rest": {"host": "127.0.0.1", "timeout_ms": 0},
    }
    servers: dict[int, Served] = {}
    found: dict[Configuration, Measured] = {}
    steps: list[dict[_Size, float]] = []
    sizes = {(body.model, body.rows) for each in (*FITTED, *HELD_OUT) for body in each.bodies}
    with steps_alone(folders, sizes) as steps_now, contextlib.ExitStack() as stack:
        for cores in (1, CORES):
            with pinned(cores):
                server = runstep_server({**config, "processes": cores})
                servers[cores] = stack.enter_context(server)
        for each in (*FITTED, *HELD_OUT):
            served = servers[each.cores]
            calls = [call_of(body, folders[body.model], served) for body in each.bodies]
            works = [
                work_of(body, call, answer_to(call))
                for body, call in zip(each.bodies, calls, strict=True)
            ]
            found[each] = Measured(each, served, calls, works, callers, seconds)
        for one in found.values():
            warm_up(one)
        for _ in range(rounds):
            steps.append(steps_now())
            for one in found.values():
                one.turns.append(one_turn(one, one.callers, one.turn_seconds))
    for each, one in found.items():
        one.works = [
            dataclasses.replace(work, step=median([of[body.model, body.rows] for of in steps]))
            for body, work in zip(each.bodies, one.works, strict=True)
        ]
    return found


def fitted(found: Mapping[Configuration, Measured]) -> Constants:
    """Return the constants of the machine, from the configurations of FITTED."""
    alone, crowded = (
        [found[each].seen for each in FITTED if (each.cores > 1) is is_crowded]
        for is_crowded in (False, True)
    )
    return fit(alone, crowded)


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
        "works": [dataclasses.asdict(work) for work in one.works],
        "per_second": measured,
        "per_processor_second": one.figure("per_processor_second"),
        "client": one.figure("client"),
        "callers": one.callers,
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
    parser.add_argument("--rounds", type=int, default=5)
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
