"""Hostile graphs through clusters: no crash, no hang, no other answer than numpy kernels give.

Each input is a mutated seed. It runs on numpy kernels and then with every cluster compiled; a few
runs with other feeds follow in both sessions, and variables get other values between them.
"""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

import protos as pb
from runtime.api import OpError, SessionOptions, new_session, set_tensor_limit
from tests.fuzz.children import Limits, enter
from tests.fuzz.mutate_graphs import Hostile, mutated, other_feeds
from tests.fuzz.seeds import Seed, read_seeds
from tests.fuzz.steps import feeds_of, read_steps, show_steps, smaller_steps, step_of, write_steps
from tests.fuzz.target import Target, import_kernels

TENSOR_BYTES = 256 << 20
_SLOW_SECONDS = 2.0  # numpy kernels that take longer show nothing about clusters
# Bytes that compiling may need beyond what numpy kernels needed, and the answers.
_MAX_GROWTH = 512 << 20
TOLERANCE = 1e-4  # of float32 and float64
# Four roundings of bfloat16 and of the smallest floats: an engine may round where none does.
_TOLERANCE_OF_BYTES = {2: 4 * 2.0**-7, 1: 4 * 2.0**-2}


class Clusters(Target):
    """Mutated cases of ops that an engine computes, recurrent layers, and frozen models."""

    name = "clusters"
    engine: ClassVar[str] = "auto"
    limits = Limits(seconds=20.0, wall_seconds=400.0, memory_bytes=5 << 30, growth_bytes=2 << 30)

    def __init__(self) -> None:
        self._seeds: list[Seed] = []

    def load(self) -> None:
        self._seeds = read_seeds()
        import_kernels()

    def start(self) -> None:
        set_tensor_limit(TENSOR_BYTES)

    def make(self, random_state: random.Random) -> bytes:
        made = mutated(_chosen(self._seeds, random_state), random_state)
        return write_steps(made.graph, _steps(made, random_state))

    def run(self, data: bytes) -> str:
        graph, steps = read_steps(data)
        started = time.monotonic()
        enter("")  # what numpy kernels do with it is another target
        plain = _answers(graph, steps, clusters="off")
        if time.monotonic() - started > _SLOW_SECONDS:
            return "slow"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        enter("forced")
        forced = _answers(graph, steps, clusters="force", engine=self.engine)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        sizes = [array.nbytes for each in forced if isinstance(each, list) for array in each]
        grown -= sum(sizes) + max(sizes, default=0)  # the last one is copied
        if grown > _MAX_GROWTH:
            return f"MEMORY {grown >> 20} MB"
        for position, (one, other) in enumerate(zip(plain, forced, strict=True)):
            difference = _difference(one, other)
            if difference:
                return f"DIFFERS in step {position}: {difference}"
        return "error" if any(isinstance(each, str) for each in plain) else "answer"

    def smaller(self, data: bytes) -> Iterator[bytes]:
        yield from smaller_steps(data)

    def show(self, data: bytes) -> str:
        return show_steps(data)


def _chosen(seeds: Sequence[Seed], random_state: random.Random) -> Seed:
    # Models and layers are few, and have more nodes than cases.
    large = [each for each in seeds if each.name.startswith(("layer/", "model/"))]
    return random_state.choice(large if large and random_state.random() < 0.15 else seeds)


def _steps(made: Hostile, random_state: random.Random) -> list[pb.RunStepRequest]:
    runs = [made.feeds]
    if made.feeds:
        runs += [other_feeds(made.feeds, random_state) for _ in range(2)]
    if made.assignments:
        runs += [made.feeds] * 2
    steps = [step_of(feeds, made.fetches) for feeds in runs]
    if made.assignments:
        steps.insert(2, step_of({}, [], made.assignments))
    if made.targets:
        steps.insert(0, step_of({}, [], made.targets))
    return steps


_FAULT = "InternalError"  # what an exception that is no OpError becomes
Answer = str | list[np.ndarray]


def _answers(
    graph: pb.GraphDef, steps: Sequence[pb.RunStepRequest], **options: str
) -> list[Answer]:
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    session = new_session(SessionOptions(config=config, **options))
    found: list[Answer] = []
    try:
        session.create(graph)
        for step in steps:
            try:
                values = session.run(feeds_of(step), list(step.fetch), list(step.target))
                found.append([np.array(each) for each in values])
            except OpError as error:
                found.append(type(error).__name__)
                if not step.fetch:  # the variables have no values
                    break
            except Exception as error:
                found.append(f"{type(error).__module__}.{type(error).__name__}: {error}")
    except OpError as error:
        found.append(type(error).__name__)
    finally:
        session.close()
    return found


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
            is_close |= np.isinf(wanted) & np.isinf(given)  # of a zero, whose sign is not promised
            is_close |= np.abs(wanted - given) <= _tolerance(want.dtype) * scale
        if not is_close.all():
            at = int(np.flatnonzero(~is_close.reshape(-1))[0])
            return (
                f"{want.reshape(-1)[at]!r} became {got.reshape(-1)[at]!r} at {at} of {want.shape}"
            )
    return ""


def _tolerance(dtype: np.dtype[Any]) -> float:
    return _TOLERANCE_OF_BYTES.get(dtype.itemsize, TOLERANCE) if dtype.kind == "f" else TOLERANCE


def _short(answer: Answer) -> str:
    return (
        answer[:300] if isinstance(answer, str) else f"values of {[each.shape for each in answer]}"
    )
