"""Say in words what was slow in a traced step.

Times are of the ops themselves: an op that runs others, such as a loop, has what they leave.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import protos as pb
from runtime.api import dtypes, shape_from_proto, shape_text
from server.commands.load.report import duration

_KINDS = 3  # of ops that the sentence names
_ROWS = 10  # of the table
_SMALL_PERCENT = 1.0  # what took less is not named in the sentence


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """One execution of a node, in nanoseconds; `own` is without the nodes that ran within it."""

    node: str
    op: str
    output: str
    thread: int
    begin: int
    end: int
    own: int = 0


def describe_slow(step_stats: pb.StepStats) -> Iterator[str]:
    """Yield a sentence on what the step's time went into, and a table of its slowest nodes."""
    spans = _with_own_times(_spans(step_stats))
    if not spans:
        yield "No op ran."
        return
    threads = len({span.thread for span in spans})
    clock = max(span.end for span in spans) - min(span.begin for span in spans)
    busy = sum(span.own for span in spans)
    if threads == 1:
        whole, what = max(clock, 1), duration(clock / 1e9)
    else:
        whole = max(busy, 1)
        what = (
            f"{duration(busy / 1e9)} of work on {threads} threads ({duration(clock / 1e9)} passed)"
        )
    yield f"{_sentence(spans, whole, what, clock - busy if threads == 1 else 0)}."
    yield ""
    yield from _table(spans, whole)


def _sentence(spans: Sequence[Span], whole: int, what: str, between: int) -> str:
    times: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    for span in spans:
        times[span.op] += span.own
        counts[span.op] += 1
    named = [
        (op, own)
        for index, (op, own) in enumerate(times.most_common(_KINDS))
        if index == 0 or 100 * own / whole >= _SMALL_PERCENT
    ]
    parts = [(own, f"was {op} ({_count(counts[op])})") for op, own in named]
    if 100 * between / whole >= _SMALL_PERCENT:
        parts.append((between, "passed between ops"))
    parts.sort(key=lambda part: -part[0])
    if rest := len(spans) - sum(counts[op] for op, _ in named):
        own = sum(times.values()) - sum(own for _, own in named)
        parts.append((own, f"was {rest} other{'' if rest == 1 else 's'}"))
    return "; ".join(
        f"{100 * own / whole:.0f} %{'' if index else f' of {what}'} {text}"
        for index, (own, text) in enumerate(parts)
    )


def _count(ops: int) -> str:
    return f"{ops} op{'' if ops == 1 else 's'}"


def _table(spans: Sequence[Span], whole: int) -> Iterator[str]:
    slowest = sorted(spans, key=lambda span: -span.own)[:_ROWS]
    width = max(len("op"), *(len(span.op) for span in slowest))
    yield f"{'time':>8} {'%':>6}  {'op':<{width}}  node and first output"
    for span in slowest:
        share = 100 * span.own / whole
        line = f"{duration(span.own / 1e9):>8} {share:>6.1f}  {span.op:<{width}}  {span.node}"
        yield f"{line}  {span.output}".rstrip()


def _spans(step_stats: pb.StepStats) -> Iterator[Span]:
    for device in step_stats.dev_stats:
        for stats in device.node_stats:
            if stats.node_name.startswith(
                "_"
            ):  # what passes values in and out, which takes no time
                continue
            op = stats.timeline_label.rpartition(" = ")[2].partition("(")[0]
            end = stats.all_start_nanos + stats.all_end_rel_nanos
            yield Span(
                stats.node_name, op or stats.node_name, _output(stats), stats.thread_id,
                stats.all_start_nanos, end,
            )  # fmt: skip


def _output(stats: pb.NodeExecStats) -> str:
    if not stats.output:
        return ""
    described = stats.output[0].tensor_description
    shape = shape_text(shape_from_proto(described.shape))
    return f"{dtypes.from_number(described.dtype)[0].name_on_wire}{shape}"


def _with_own_times(spans: Iterable[Span]) -> list[Span]:
    """Return the spans with the time of each that no other within it on its thread has."""
    found: list[Span] = []
    by_thread: dict[int, list[Span]] = {}
    for span in spans:
        by_thread.setdefault(span.thread, []).append(span)
    for of_thread in by_thread.values():
        open_spans: list[tuple[Span, list[int]]] = []  # with the time of the spans within

        def close(until: int, stack: list[tuple[Span, list[int]]] = open_spans) -> None:
            while stack and stack[-1][0].end <= until:
                span, within = stack.pop()
                length = span.end - span.begin
                found.append(dataclasses.replace(span, own=max(0, length - within[0])))
                if stack:
                    stack[-1][1][0] += length

        for span in sorted(of_thread, key=lambda each: (each.begin, -each.end)):
            close(span.begin)
            open_spans.append((span, [0]))
        while open_spans:
            close(open_spans[-1][0].end)
    return found
