"""Comparison of one op: make random cases, run them in both runtimes, compare and count."""

from __future__ import annotations

import collections
import dataclasses
import zlib
from collections.abc import Iterable

from runtime.framework.dtypes import DataType
from tests.conformance.case import Answer, Case
from tools.oracle_comparison.agreement import Verdict, compare, our_answers
from tools.oracle_comparison.known_differences import reason_for
from tools.oracle_comparison.mutation import allowed_types, mutated
from tools.oracle_comparison.reference import Answers, Reference
from tools.oracle_comparison.seeds import dtype_of, is_borrowed, leading_attr, pick, seeds_by_op

NO_KERNEL = ("No OpKernel was registered", "Could not find device for node")
# Messages of TensorFlow's Python front end, which rejected the graph before any kernel ran.
NO_GRAPH = ("with input shapes:", "Graph execution error")
VALID_TRIALS = 8
TRIAL_SECONDS = 0.5  # of a step; one that waits for another is not tried for long
MIN_CASES_WITHOUT_KERNEL = 3  # a type is skipped if TensorFlow has no kernel for its first cases


@dataclasses.dataclass
class Tally:
    """Counts of the cases of one op and type; each case with a reference is counted once.

    A case whose every step ends in an error is a refusal. `excused` counts, by the rule that
    explains them, the cases that differ as docs/kernel_differences.md documents.
    """

    values: int = 0  # agree, and values were compared
    shapes: int = 0  # agree in types and shapes, which alone are determined
    refusals: int = 0  # agree in the code of the error
    differing: int = 0
    excused: dict[str, int] = dataclasses.field(default_factory=dict)
    other_words: int = 0  # refusals whose messages differ
    no_reference: int = 0

    @property
    def agreed(self) -> int:
        return self.values + self.shapes + self.refusals

    @property
    def tried(self) -> int:
        return self.agreed + self.differing


@dataclasses.dataclass(frozen=True)
class Request:
    """Number of cases, seed, and whether errors with different messages are listed."""

    seed: int = 1
    cases: int = 12  # of each op and type
    messages: bool = False


@dataclasses.dataclass
class Report:
    """The result for one op: counts by type, and a line for each case that differs."""

    op: str
    tallies: dict[str, Tally] = dataclasses.field(default_factory=dict)
    lines: list[str] = dataclasses.field(default_factory=list)

    @property
    def total(self) -> Tally:
        return sum_of(self.tallies.values())


def sum_of(tallies: Iterable[Tally]) -> Tally:
    counts: collections.Counter[str] = collections.Counter()
    excused: collections.Counter[str] = collections.Counter()
    for tally in tallies:
        fields = dataclasses.asdict(tally)
        excused.update(fields.pop("excused"))
        counts.update(fields)
    return Tally(**counts, excused=dict(excused))


def counts_text(tally: Tally) -> str:
    return (
        f"agreed on values {tally.values}, on shapes {tally.shapes}, on refusal {tally.refusals}, "
        f"differing {tally.differing}, excused {sum(tally.excused.values())}, "
        f"error in other words {tally.other_words}, no reference {tally.no_reference}"
    )


def type_name(dtype: DataType | None) -> str:
    return dtype.name_on_wire if dtype else "any"


def types_of(op: str) -> list[DataType | None]:
    """Return the leading types to try: first the recorded ones, then those of the signature."""
    recorded = list(dict.fromkeys(dtype_of(case, op) for case in seeds_by_op()[op]))
    attr = leading_attr(op)
    if attr is None or is_borrowed(op):
        return recorded
    return list(dict.fromkeys([*recorded, *allowed_types(op, attr)]))


def make_case(op: str, dtype: DataType | None, seed: int, number: int) -> Case:
    """Return the random case of an op and type; equal arguments give the same case.

    Every fourth case is taken as it comes. Of the others, the first of up to VALID_TRIALS is taken
    that this runtime runs without an error, because inputs at random are mostly refused. (What it
    refuses although TensorFlow runs it is found by the cases that are taken as they come.)
    """
    seeds = seeds_by_op()[op]
    same = [case for case in seeds if dtype_of(case, op) == dtype]
    label = type_name(dtype)
    start = pick(same if same and number % 4 else seeds, f"{seed}/{label}/{number}")
    key = [seed, zlib.crc32(f"{op}/{label}".encode()), number]
    name = f"{op}/{label}/{number}"
    first = mutated(start, op, dtype, name, key)
    if number % 4 == 0 or runs(first):
        return first
    for trial in range(1, VALID_TRIALS):
        start = pick(same or seeds, f"{seed}/{label}/{number}/{trial}")
        try:
            other = mutated(start, op, dtype, name, [*key, trial])
            if runs(other):
                return other
        except Exception:  # for instance a tensor that cannot be serialized
            continue
    return first


def runs(case: Case) -> bool:
    """Return whether every step of the case succeeds here, soon enough."""
    return all(
        isinstance(each, Answer) and not each.code for each in our_answers(case, TRIAL_SECONDS)
    )


def compare_op(reference: Reference, op: str, request: Request) -> Report:
    """Compare every type of the op; a case that cannot be made or compared becomes a line."""
    report = Report(op)
    reference.open(op)
    for dtype in types_of(op):
        tally = _compare_type(reference, op, dtype, request, report.lines)
        if tally != Tally():
            report.tallies[type_name(dtype)] = tally
    reference.save()
    return report


def _compare_type(
    reference: Reference, op: str, dtype: DataType | None, request: Request, lines: list[str]
) -> Tally:
    tally = Tally()
    cases = []
    for number in range(request.cases):
        try:
            case = make_case(op, dtype, request.seed, number)
            _ = case.digest
            cases.append(case)
        except Exception as error:  # for instance a tensor that cannot be serialized
            lines.append(f"{op}/{type_name(dtype)}/{number} not made: {error}")
            tally.no_reference += 1
    answers = reference.answers(cases[:MIN_CASES_WITHOUT_KERNEL])
    if answers and all(_lacks(answer, NO_KERNEL) for answer in answers):
        return Tally()
    answers += reference.answers(cases[MIN_CASES_WITHOUT_KERNEL:])
    for case, theirs in zip(cases, answers, strict=True):
        if isinstance(theirs, str) or _lacks(theirs, NO_KERNEL + NO_GRAPH):
            tally.no_reference += 1
        else:
            _judge(op, case, theirs, tally, lines, request.messages)
    return tally


def _lacks(theirs: Answers, words: tuple[str, ...]) -> bool:
    """Return whether one of TensorFlow's errors contains one of `words`."""
    return not isinstance(theirs, str) and any(
        word in answer.message for answer in theirs for word in words
    )


def _judge(
    op: str, case: Case, theirs: list[Answer], tally: Tally, lines: list[str], messages: bool
) -> None:
    ours = our_answers(case)
    try:
        verdict = compare(case, ours, theirs)
        reason = reason_for(op, case, ours, theirs) if verdict.difference else ""
    except Exception as error:  # a value that numpy cannot compare
        verdict, reason = Verdict(f"not judged: {type(error).__name__}: {error}"), ""
    if reason:
        tally.excused[reason] = tally.excused.get(reason, 0) + 1
        return
    tally.other_words += verdict.message
    if verdict.difference:
        tally.differing += 1
        lines.append(f"{case.name}: {verdict.difference}")
        return
    if all(answer.code for answer in theirs):
        tally.refusals += 1
    elif case.shape_only:
        tally.shapes += 1
    else:
        tally.values += 1
    if verdict.message and messages:
        pairs = zip(ours, theirs, strict=True)
        texts = [(o.message, t.message) for o, t in pairs if not isinstance(o, str) and t.code]
        lines.append(f"{case.name}: {texts[0][0]!r}; TensorFlow {texts[0][1]!r}")
