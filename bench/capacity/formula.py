"""The capacity formula of docs/growing.md: what a request costs, and how many a server answers.

The processor time of a request, if no other core of the machine is busy:

    cost = body + front + application + pool + company × step
    body = numbers read × read + numbers written × write + kilobytes × kilobyte

The front is JSON, v2 with binary data or gRPC. The numbers are those that the request and the
answer write as JSON, `kilobytes` are both bodies, of HTTP or of gRPC. `read` is another one for
requests of 256 KiB and more, which are read in slices, so that others get on. `application` is for
HTTP requests of 16 KiB and more, which pass the whole ASGI application, `pool` (of HTTP or of gRPC)
for steps that do not run on the event loop, which are those of 0.4 ms and more, `step` the step
alone, without a server. In a server it takes `company` times as long, because others use the caches
in between.

With a process for each of several cores, all of them busy, caches and memory are shared and
processes wake each other up, so that a request costs

    contention of fronts × (body + front + application)
    + contention of steps × (pool + company × step)

where the body of a request of 256 KiB and more, which does not fit the caches, has the contention
of steps.

Requests per second are cores / cost. Utilisation u is the rate divided by that. A request waits for
those before it; if the times between requests and those of requests are random, 99 of 100 take at
most

    alone + cost × ln(100 u) / (1 − u)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

# Alone; in a server, where caches have other things too, it takes up to twice as long, and from
# 0.4 ms on it does not run on the event loop.
ON_LOOP_SECONDS = 2.5e-4
PLAIN_BYTES = 1 << 14  # server/connections/plain_requests.py
LARGE_BYTES = 1 << 18  # server/steps/step_runner.py
JSON, BINARY, GRPC = "JSON", "v2, binary", "gRPC"


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """What a request is: its front, its bodies, and its step.

    Attributes:
        front: JSON, BINARY or GRPC.
        sent: Bytes of the request's body.
        received: Bytes of the answer's body.
        numbers_read: In the request's body if it is JSON, else 0.
        numbers_written: In the answer's body if it is JSON, else 0.
        step: Seconds of the step alone, in one thread.
    """

    front: str
    sent: int
    received: int
    numbers_read: int
    numbers_written: int
    step: float

    @property
    def kilobytes(self) -> float:
        """Both bodies, of 1,000 bytes each."""
        return (self.sent + self.received) / 1000

    @property
    def is_plain(self) -> bool:
        """Whether the request does not pass the application."""
        return self.front == GRPC or self.sent < PLAIN_BYTES

    @property
    def is_large(self) -> bool:
        """Whether the request's body is read on another thread than that of the event loop."""
        return self.sent >= LARGE_BYTES

    @property
    def is_on_loop(self) -> bool:
        """Whether the step runs on the event loop, not on a pool."""
        return self.step < ON_LOOP_SECONDS


@dataclasses.dataclass(frozen=True, slots=True)
class Constants:
    """What a machine takes, in seconds; company and contentions are factors."""

    front: Mapping[str, float]
    application: float
    kilobyte: Mapping[str, float]
    read: float
    read_large: float
    write: float
    pool: Mapping[str, float]
    company: float = 1.0
    front_contention: float = 1.0
    step_contention: float = 1.0

    def body(self, work: Work) -> float:
        """Return the seconds of reading and writing the bodies."""
        read = self.read_large if work.is_large else self.read
        numbers = work.numbers_read * read + work.numbers_written * self.write
        return numbers + work.kilobytes * self.kilobyte[work.front]

    def front_of(self, work: Work) -> float:
        """Return the seconds of the front, while others are idle."""
        return self.front[work.front] + (0.0 if work.is_plain else self.application)

    def step_of(self, work: Work) -> float:
        """Return the seconds of a step, while other cores are idle."""
        return (0.0 if work.is_on_loop else self.pool[work.front]) + self.company * work.step

    def shared(self, work: Work) -> tuple[float, float]:
        """Return the seconds that have the contention of fronts, and those with that of steps."""
        body, front, step = self.body(work), self.front_of(work), self.step_of(work)
        return (front, step + body) if work.is_large else (front + body, step)

    def cost(self, work: Work, cores: int) -> float:
        """Return the processor seconds of a request while all `cores` are busy."""
        front, step = self.shared(work)
        if cores > 1:
            front, step = front * self.front_contention, step * self.step_contention
        return front + step


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """A measured configuration: seconds of the cores' time for a request, all included."""

    work: Work
    seconds: float


def mixture_cost(constants: Constants, parts: Sequence[tuple[float, Work]], cores: int) -> float:
    """Return the mean cost of requests; `parts` are their shares, which add up to 1, and work."""
    return sum(share * constants.cost(work, cores) for share, work in parts)


def per_second(cost: float, cores: float) -> float:
    """Return the requests per second that keep `cores` busy."""
    return cores / cost


def cores_for(rate: float, cost: float, utilisation: float) -> int:
    """Return how many cores `rate` requests per second need, none busier than `utilisation`."""
    return max(1, math.ceil(rate * cost / utilisation - 1e-9))


def p99(alone: float, cost: float, utilisation: float) -> float:
    """Return the seconds that 99 of 100 requests take at most; `alone` is that of an idle server.

    Raises ValueError if the utilisation is not below 1.
    """
    if not 0 <= utilisation < 1:
        raise ValueError(f"utilisation must be at least 0 and below 1, got {utilisation:g}")
    if 100 * utilisation <= 1:
        return alone
    return alone + cost * math.log(100 * utilisation) / (1 - utilisation)


def highest_utilisation(alone: float, cost: float, limit: float) -> float:
    """Return the utilisation, in hundredths, up to which p99 is at most `limit` seconds."""
    allowed = [u for u in range(1, 100) if p99(alone, cost, u / 100) <= limit]
    return max(allowed, default=0) / 100


# --- fitting ------------------------------------------------------------------------------------

# The name of a constant, and the front or protocol that it is of, or "".
_Key = tuple[str, str]


def fit(alone: Sequence[Seen], crowded: Sequence[Seen]) -> Constants:
    """Return the constants of a machine.

    `alone` was measured on one core, `crowded` on several busy ones. The squares of the errors, as
    parts of what was measured, are as small as they can be, first those of `alone`. No constant is
    negative. Raises ValueError if the measurements do not tell the constants from each other.
    """
    uses = [_uses(each.work) for each in alone]
    keys = sorted({key for each in uses for key in each})
    matrix = [
        [of.get(key, 0.0) / each.seconds for key in keys]
        for of, each in zip(uses, alone, strict=True)
    ]
    found = dict(zip(keys, not_negative(np.array(matrix)).tolist(), strict=True))
    fronts = {front: found[kind, front] for kind, front in keys if kind == "front"}

    def shown(kind: str, of: str = "") -> float:
        if (kind, of) not in found:
            raise ValueError(f"no measurement on one core shows {kind} {of}".rstrip())
        return found[kind, of]

    def by_front(kind: str) -> dict[str, float]:
        return {front: shown(kind, protocol_of(front)) for front in fronts}

    constants = Constants(
        front=fronts,
        application=shown("application"),
        kilobyte=by_front("kilobyte"),
        read=shown("read"),
        read_large=shown("read_large"),
        write=shown("write"),
        pool=by_front("pool"),
        company=shown("company"),
    )
    return with_contention(constants, crowded)


def protocol_of(front: str) -> str:
    """Return GRPC or "HTTP"."""
    return GRPC if front == GRPC else "HTTP"


def _uses(work: Work) -> dict[_Key, float]:
    """Return how much of each constant a request needs on one core."""
    protocol = protocol_of(work.front)
    uses = {
        ("front", work.front): 1.0,
        ("kilobyte", protocol): work.kilobytes,
        ("company", ""): work.step,
    }
    if not work.is_plain:
        uses["application", ""] = 1.0
    if not work.is_on_loop:
        uses["pool", protocol] = 1.0
    if work.numbers_read:
        uses["read_large" if work.is_large else "read", ""] = work.numbers_read
    if work.numbers_written:
        uses["write", ""] = work.numbers_written
    return uses


def with_contention(found: Constants, crowded: Sequence[Seen]) -> Constants:
    """Return the constants with those of several busy cores."""
    matrix = [[part / each.seconds for part in found.shared(each.work)] for each in crowded]
    fronts, steps = not_negative(np.array(matrix)).tolist()
    return dataclasses.replace(found, front_contention=fronts, step_contention=steps)


def not_negative(matrix: np.ndarray) -> np.ndarray:
    """Return the x, float64 [columns], none negative, with which matrix @ x is nearest to 1.

    Of columns that would be negative, the worst becomes 0, until there is none. Raises ValueError
    if there are several such x.
    """
    scale = np.linalg.norm(matrix, axis=0)
    if not scale.all():
        raise ValueError(f"No measurement shows the constants {np.flatnonzero(scale == 0)}")
    free, found, ones = list(range(len(scale))), np.zeros(len(scale)), np.ones(len(matrix))
    while free:
        scaled, _, rank, _ = np.linalg.lstsq(matrix[:, free] / scale[free], ones, rcond=1e-9)
        if rank < len(free):
            raise ValueError(f"{len(matrix)} measurements do not tell {len(free)} constants")
        if scaled.min() >= 0:
            found[free] = scaled / scale[free]
            break
        del free[int(np.argmin(scaled))]
    return found
