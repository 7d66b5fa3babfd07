"""A campaign: many inputs of one target, and for each kind of finding its smallest input."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

from tests.fuzz.children import run_in_children
from tests.fuzz.target import Target, Watch, input_of, observed, signature

_TRIALS = 3000  # inputs that are tried to make one smaller
_AT_ONCE = 24  # of them, in one child
_Start = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Finding:
    """A kind of finding: the number and the outcome of its first input, and how many there were."""

    signature: str
    number: int
    outcome: str
    count: int


@dataclasses.dataclass(frozen=True)
class Outcomes:
    """What became of the inputs of a campaign: numbers of inputs by word, and the findings."""

    counts: dict[str, int]
    findings: list[Finding]


def search(
    target: Target,
    numbers: Sequence[int],
    seed: int,
    children: int,
    tell: Callable[[Finding], object] = lambda finding: None,
) -> Outcomes:
    """Run the inputs of these numbers; call `tell` at the first finding of each kind."""
    target.load()
    found: dict[str, Finding] = {}

    def report(number: int, outcome: str) -> None:
        kind = signature(outcome)
        known = found.get(kind)
        if known is None:
            found[kind] = Finding(kind, number, outcome, 1)
            tell(found[kind])
        else:
            found[kind] = dataclasses.replace(known, count=known.count + 1)

    run, start = _in_a_child(target, lambda number: input_of(target, seed, number))
    counts = run_in_children(
        run, numbers, children, target.limits, report, start, target.inputs_a_child
    )
    return Outcomes(counts, list(found.values()))


def outcome_alone(target: Target, data: bytes) -> str:
    """Return the outcome of an input in a child of its own."""
    return outcomes_in_a_child(target, [data])[0]


def minimized(target: Target, data: bytes, kind: str) -> bytes:
    """Return the smallest input found that is still a finding of this kind."""
    trials = 0
    is_smaller = True
    while is_smaller and trials < _TRIALS:
        is_smaller = False
        candidates = iter(_distinct(target.smaller(data)))
        while batch := list(itertools.islice(candidates, _AT_ONCE)):
            trials += len(batch)
            outcomes = outcomes_in_a_child(target, batch)
            alike = [
                each
                for each, outcome in zip(batch, outcomes, strict=True)
                if signature(outcome) == kind
            ]
            if alike:
                data, is_smaller = min(alike, key=len), True
                break
            if trials >= _TRIALS:
                break
    return data


def _distinct(candidates: Iterator[bytes]) -> Iterator[bytes]:
    seen: set[bytes] = set()
    for each in candidates:
        if each not in seen:
            seen.add(each)
            yield each


def outcomes_in_a_child(target: Target, inputs: Sequence[bytes]) -> list[str]:
    """Return the outcome of each input; those that are right are "right"."""
    outcomes = ["right"] * len(inputs)

    def report(number: int, outcome: str) -> None:
        outcomes[number] = outcome

    run, start = _in_a_child(target, inputs.__getitem__)
    run_in_children(run, range(len(inputs)), 1, target.limits, report, start)
    return outcomes


def _in_a_child(
    target: Target, content: Callable[[int], bytes]
) -> tuple[Callable[[int], str], _Start]:
    watch: list[Watch] = []

    def start() -> None:
        target.start()
        watch.append(Watch.begin())

    return lambda number: observed(target, watch[-1], content(number)), start
