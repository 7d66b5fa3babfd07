"""Hostile graphs through clusters: no crash, no hang, no other answer than numpy kernels give.

    python -m tests.fuzz.clusters --inputs 20000 --seed 1

Each input is a mutated seed. It runs on numpy kernels and then with every cluster compiled, in a
child process with limits of time and memory; a few runs with other feeds follow in both sessions. A
finding is printed with the number from which `--first N --inputs 1` makes it again.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np

import protos as pb
from runtime.api import OpError, SessionOptions, new_session
from tests.fuzz.children import Limits, enter, run_in_children
from tests.fuzz.mutations import Hostile, mutated, other_feeds
from tests.fuzz.seeds import Seed, read_seeds

LIMITS = Limits(seconds=20.0, memory_bytes=6 << 30)
_SLOW_SECONDS = 2.0  # numpy kernels that take longer show nothing about clusters
_ASSIGNING_RUN = 2  # before which variables get other values
_MAX_GROWTH = 512 << 20  # bytes that compiling may need beyond what numpy kernels needed
TOLERANCE = 1e-4


def hostile_input(seeds: Sequence[Seed], number: int, seed: int) -> tuple[str, Hostile]:
    """Return the name of a seed and the input that has this number."""
    random_state = random.Random(f"{seed}/{number}")
    chosen = _chosen(seeds, random_state)
    return chosen.name, mutated(chosen, random_state)


def _chosen(seeds: Sequence[Seed], random_state: random.Random) -> Seed:
    # Models and layers are few, and have more nodes than cases.
    large = [each for each in seeds if each.name.startswith(("layer/", "model/"))]
    return random_state.choice(large if large and random_state.random() < 0.15 else seeds)


def run_input(seeds: Sequence[Seed], number: int, seed: int) -> str:
    """Return what became of an input: a word, followed by details if it is a finding."""
    random_state = random.Random(f"{seed}/{number}/runs")
    _, made = hostile_input(seeds, number, seed)
    started = time.monotonic()
    runs = [made.feeds]
    if made.feeds:
        runs += [other_feeds(made.feeds, random_state) for _ in range(2)]
    if made.assignments:
        runs += [made.feeds] * 2
    plain = _answers(made, runs, "off")
    if time.monotonic() - started > _SLOW_SECONDS:
        return "slow"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    enter("forced")
    forced = _answers(made, runs, "force")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if grown > _MAX_GROWTH:
        return f"MEMORY {grown >> 20} MB"
    for position, (one, other) in enumerate(zip(plain, forced, strict=True)):
        difference = _difference(one, other)
        if difference:
            return f"DIFFERS in run {position}: {difference}"
    return "error" if isinstance(plain[0], str) else "answer"


_FAULT = "InternalError"  # what an exception that is no OpError becomes
Answer = str | list[np.ndarray]


def _answers(
    made: Hostile, runs: Sequence[Mapping[str, np.ndarray]], clusters: str
) -> list[Answer]:
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    session = new_session(SessionOptions(config=config, clusters=clusters))
    found: list[Answer] = []
    try:
        try:
            session.create(made.graph)
            if made.targets:
                session.run({}, [], made.targets)
        except OpError as error:
            return [f"{type(error).__name__}"] * len(runs)
        for position, feeds in enumerate(runs):
            try:
                if position == _ASSIGNING_RUN and made.assignments:
                    session.run({}, [], made.assignments)
                found.append([np.array(each) for each in session.run(feeds, made.fetches)])
            except OpError as error:
                found.append(f"{type(error).__name__}")
            except Exception as error:
                found.append(f"{type(error).__module__}.{type(error).__name__}: {error}")
        return found
    finally:
        session.close()


def _difference(one: Answer, other: Answer) -> str:
    """Return in which way an answer of clusters differs from that of numpy kernels, or nothing."""
    if isinstance(one, str) or isinstance(other, str):
        if isinstance(one, str) and isinstance(other, str):
            # Of two errors, either may come first.
            return f"{one} became {other}" if one != other == _FAULT else ""
        return f"{_short(one)} became {_short(other)}"
    for want, got in zip(one, other, strict=True):
        if want.shape != got.shape or want.dtype != got.dtype:
            return f"{want.dtype}{want.shape} became {got.dtype}{got.shape}"
        if want.dtype.kind not in "fiub" or not want.size:
            continue
        wanted, given = want.astype(np.float64), got.astype(np.float64)
        finite = np.isfinite(wanted)
        scale = float(np.abs(wanted[finite]).max(initial=1.0))
        with np.errstate(invalid="ignore"):
            is_close = (wanted == given) | (np.isnan(wanted) & np.isnan(given))
            is_close |= np.abs(wanted - given) <= TOLERANCE * scale
        if not is_close.all():
            at = int(np.flatnonzero(~is_close.reshape(-1))[0])
            return (
                f"{want.reshape(-1)[at]!r} became {got.reshape(-1)[at]!r} at {at} of {want.shape}"
            )
    return ""


def _short(answer: Answer) -> str:
    return (
        answer[:300] if isinstance(answer, str) else f"values of {[each.shape for each in answer]}"
    )


def main(arguments: Sequence[str]) -> int:
    """Run the inputs that the command line asks for; return 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--children", type=int, default=2)
    options = parser.parse_args(arguments)
    found = read_seeds()

    def one(number: int) -> str:
        return run_input(found, number, options.seed)

    def report(number: int, outcome: str) -> None:
        name, _ = hostile_input(found, number, options.seed)
        sys.stdout.write(f"{number} {name}: {outcome}\n")
        sys.stdout.flush()

    numbers = range(options.first, options.first + options.inputs)
    counts = run_in_children(one, numbers, options.children, LIMITS, report)
    totals = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    sys.stdout.write(f"{totals}\n")
    return int(any(outcome.isupper() for outcome in counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
