"""Whether a soak passed: pure functions of its samples and counts.

Growth: a sample of the resident memory is taken every half second. The median of the samples of a
minute is that minute's value, so that a large body that is under way for a moment does not count.
The minutes after WARM_UP_MINUTES are divided in three parts; the growth is the ratio of the median
of the last part's minutes to that of the first part's, minus 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from bench.measure import median
from bench.soak.record import Counts

WARM_UP_MINUTES = 10  # caches, pools and the allocator's arenas fill
LEAST_MINUTES = 6  # after the warm-up: two in each part
MAX_GROWTH = 0.02


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a process holds at an instant; `latency` is the slowest /healthz since the last one.

    `names` are the threads' and descriptors' kinds, where the system knows them.
    """

    resident_bytes: int
    threads: int
    descriptors: int
    latency: float = 0.0
    names: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Minute:
    """A minute of the soak: its counts, and samples of what the server held."""

    counts: Counts
    samples: list[Usage]

    @property
    def resident_bytes(self) -> float:
        """The median of the samples."""
        return median([sample.resident_bytes for sample in self.samples])

    @property
    def latency(self) -> float:
        """Seconds of the slowest /healthz."""
        return max(sample.latency for sample in self.samples)


def growth(minutes: Sequence[Minute]) -> float | None:
    """Return by which part the resident memory grew, or None if the soak was too short to say."""
    measured = [minute.resident_bytes for minute in minutes[WARM_UP_MINUTES:]]
    if len(measured) < LEAST_MINUTES:
        return None
    part = len(measured) // 3
    return median(measured[-part:]) / median(measured[:part]) - 1


def total(minutes: Sequence[Minute]) -> Counts:
    """Return the counts of all minutes."""
    counts = Counts()
    for minute in minutes:
        counts.add(minute.counts)
    return counts


def faults(minutes: Sequence[Minute], start: Usage, end: Usage) -> list[str]:
    """Return why the soak failed, or an empty list.

    Args:
        start: What the idle server held after every kind of work had been done once.
        end: What the idle server held in the end.
    """
    counts, grown, found = total(minutes), growth(minutes), []
    if counts.wrong:
        found.append(f"{counts.wrong} wrong answers")
    if counts.failed:
        codes = ", ".join(f"{count} {code}" for code, count in sorted(counts.failed.items()))
        found.append(f"failed requests that no fault explains: {codes}")
    if grown is not None and grown > MAX_GROWTH:
        found.append(f"the resident memory grew by {grown:.1%} after the warm-up")
    for what in ("threads", "descriptors"):
        before, after = getattr(start, what), getattr(end, what)
        if after > before:
            found.append(f"{after} {what} in the end, {before} at the start")
    more = {
        name: count - start.names.get(name, 0)
        for name, count in end.names.items()
        if count > start.names.get(name, 0)
    }
    if more and (end.threads > start.threads or end.descriptors > start.descriptors):
        found.append(f"more in the end: {more}")
    return found
