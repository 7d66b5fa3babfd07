"""The capacity formula of docs/growing.md: what a request costs, and how many a server answers.

The processor time of a request, if no other core of the machine is busy:

    cost = body + front + application + pool + company × step
    body = numbers × number + kilobytes × kilobyte of the front

The front is JSON, v2 with binary data or gRPC. `numbers` are those that the request and the answer
write as JSON, `kilobytes` are both bodies. `application` is for HTTP requests of 16 KiB and more,
which pass the whole ASGI application, `pool` (of gRPC or of HTTP) for steps of 0.1 ms and more,
which do not run on the event loop, `step` the step alone, without a server. In a server it takes
`company` times as long, because others use the caches in between.

With a process for each of several cores, all of them busy, caches and memory are shared and
processes wake each other up, so that a request costs

    body + contention of fronts × (front + application)
         + contention of steps × (pool + company × step)

A step on the event loop counts to the front. Requests per second are cores / cost. Utilisation u is
the rate divided by that. A request waits for those before it; if the times between requests and
those of requests are random, 99 of 100 take at most

    alone + cost × ln(100 u) / (1 − u)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from bench.measure import median

# Alone; in a server, where caches have other things too, it takes up to twice as long, and from
# 0.2 ms on it does not run on the event loop.
ON_LOOP_SECONDS = 1e-4
PLAIN_BYTES = 1 << 14  # server/connections/plain_requests.py
JSON, BINARY, GRPC = "JSON", "v2, binary", "gRPC"


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """What a request is: its front, its bodies, and its step.

    Attributes:
        front: JSON, BINARY or GRPC.
        sent: Bytes of the request's body.
        received: Bytes of the answer's body.
        numbers: In both bodies if they are JSON, else 0.
        step: Seconds of the step alone, in one thread.
    """

    front: str
    sent: int
    received: int
    numbers: int
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
    def is_on_loop(self) -> bool:
        """Whether the step runs on the event loop, not on a pool."""
        return self.step < ON_LOOP_SECONDS


@dataclasses.dataclass(frozen=True, slots=True)
class Constants:
    """What a machine takes, in seconds; company and contentions are factors."""

    front: Mapping[str, float]
    application: float
    kilobyte: Mapping[str, float]
    number: float
    pool: Mapping[str, float]
    company: float = 1.0
    front_contention: float = 1.0
    step_contention: float = 1.0

    def body(self, work: Work) -> float:
        """Return the seconds of reading and writing the bodies."""
        return work.numbers * self.number + work.kilobytes * self.kilobyte[work.front]

    def front_of(self, work: Work) -> float:
        """Return the seconds of the front, with a step on its event loop, while others are idle."""
        front = self.front[work.front] + (0.0 if work.is_plain else self.application)
        return front + (work.step if work.is_on_loop else 0.0)

    def step_of(self, work: Work) -> float:
        """Return the seconds of a step on a pool, while other cores are idle."""
        return 0.0 if work.is_on_loop else self.pool[work.front] + self.company * work.step

    def cost(self, work: Work, cores: int) -> float:
        """Return the processor seconds of a request while all `cores` are busy."""
        front, step = self.front_of(work), self.step_of(work)
        if cores > 1:
            front, step = front * self.front_contention, step * self.step_contention
        return self.body(work) + front + step


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


@dataclasses.dataclass(frozen=True, slots=True)
class Fitted:
    """The measured configurations that give the constants.

    Attributes:
        tiny: front → a tiny request whose step runs on the loop.
        large: front → such a request with many numbers; of JSON one that passes the application.
        plain: two large requests as JSON that do not pass it, with short and with long numbers.
        pooled: front → requests whose step runs on a pool for a short time; v2 is as JSON.
        long: a request as JSON whose step takes far longer.
        crowded: a tiny request as JSON while several cores are busy.
        crowded_steps: requests whose step runs on a pool, while several cores are busy.
    """

    tiny: Mapping[str, Seen]
    large: Mapping[str, Seen]
    plain: tuple[Seen, Seen]
    pooled: Mapping[str, Sequence[Seen]]
    long: Seen
    crowded: Seen
    crowded_steps: Sequence[Seen]


def fit_plain(tiny: Seen, first: Seen, second: Seen) -> tuple[float, float]:
    """Return the seconds of a number and of a kilobyte, of three requests with the same step.

    Raises ValueError if the two have as many bytes for each number.
    """
    (n1, k1, t1), (n2, k2, t2) = (
        (
            each.work.numbers - tiny.work.numbers,
            each.work.kilobytes - tiny.work.kilobytes,
            each.seconds - tiny.seconds,
        )
        for each in (first, second)
    )
    determinant = n1 * k2 - n2 * k1
    if abs(determinant) < 1e-3 * abs(n1 * k2):
        raise ValueError("one body must have more bytes for each number than the other")
    return (t1 * k2 - t2 * k1) / determinant, (n1 * t2 - n2 * t1) / determinant


def fit(given: Fitted) -> Constants:
    """Return the constants of a machine."""
    tiny, large = given.tiny, given.large
    number, kilobyte = fit_plain(tiny[JSON], *given.plain)
    none = dict.fromkeys(tiny, 0.0)
    found = Constants(none, 0.0, {JSON: kilobyte}, number, none)
    application = large[JSON].seconds - tiny[JSON].seconds
    application -= found.body(large[JSON].work) - found.body(tiny[JSON].work)
    kilobytes = {JSON: kilobyte}
    for front in tiny.keys() - {JSON}:
        more = large[front].seconds - tiny[front].seconds
        more -= 0.0 if large[front].work.is_plain else application
        size = large[front].work.kilobytes - tiny[front].work.kilobytes
        kilobytes[front] = more / size
    found = dataclasses.replace(found, application=application, kilobyte=kilobytes)
    fronts = {front: seen.seconds - found.cost(seen.work, 1) for front, seen in tiny.items()}
    found = dataclasses.replace(found, front=fronts)
    found = dataclasses.replace(found, company=fit_company(found, given))
    pools = {
        front: median([each.seconds - found.cost(each.work, 1) for each in seen])
        for front, seen in given.pooled.items()
    }
    pools |= dict.fromkeys(tiny.keys() - pools.keys(), pools[JSON])
    return with_contention(dataclasses.replace(found, pool=pools), given)


def fit_company(found: Constants, given: Fitted) -> float:
    """Return how many times as long a step takes in a server; all but pools is found."""
    left = [
        (each.work.step, each.seconds - found.body(each.work) - found.front_of(each.work))
        for each in (given.long, *given.pooled[JSON])
    ]
    (long_step, long_left), *short = left
    step, rest = median([each for each, _ in short]), median([each for _, each in short])
    return (long_left - rest) / (long_step - step)


def with_contention(found: Constants, given: Fitted) -> Constants:
    """Return the constants with those of several busy cores."""
    work = given.crowded.work  # on the loop
    rest = given.crowded.seconds - found.body(work)
    found = dataclasses.replace(found, front_contention=rest / found.front_of(work))
    factors = []
    for each in given.crowded_steps:
        rest = each.seconds - found.body(each.work)
        rest -= found.front_contention * found.front_of(each.work)
        factors.append(rest / found.step_of(each.work))
    return dataclasses.replace(found, step_contention=median(factors))
