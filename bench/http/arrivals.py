"""Load an HTTP server with requests that come when they come, not when the server is ready.

    python -m bench.http.arrivals ADDRESS PATH BODY RATE SECONDS [HEADER …]

The requests are due at random times, RATE in a second on average (a Poisson process, with the same
times in every run), as those of many callers that know nothing of each other are. The time of a
request counts from when it was due: what waits for a connection, because the server is slow, is
slow. The other arguments and what is printed are those of bench/http/load.py. The loop never
sleeps, so that it is not late: it needs a core that the server does not use.
"""

from __future__ import annotations

import collections
import pathlib
import random
import sys
import time
from collections.abc import Iterator, Sequence

from bench.http.load import ANSWER_SECONDS, JSON, connected, print_figures

CONNECTIONS = 64
SEED = 1


def arrivals(rate: float, seconds: float, seed: int = SEED) -> Iterator[float]:
    """Yield the seconds from the beginning at which requests are due."""
    source = random.Random(seed)
    due = source.expovariate(rate)
    while due < seconds:
        yield due
        due += source.expovariate(rate)


def load(
    address: str,
    path: str,
    body: bytes,
    rate: float,
    seconds: float,
    headers: Sequence[str] = JSON,
    connections: int = CONNECTIONS,
) -> list[float]:
    """Return the seconds of each request that was due within `seconds`.

    Raises:
        TimeoutError: Answers are missing long after the last request was due.
    """
    times: list[float] = []
    due = collections.deque(arrivals(rate, seconds))
    with connected(address, path, body, connections, headers) as (opened, poll):
        free = collections.deque(opened.values())
        begun: dict[int, float] = {}  # when the request of a connection was due
        start = time.perf_counter()
        while due or begun:
            now = time.perf_counter() - start
            while due and free and due[0] <= now:
                each = free.popleft()
                begun[each.socket.fileno()] = due.popleft()
                each.send()
            for number, _ in poll.poll(0):
                if opened[number].receive():
                    times.append(time.perf_counter() - start - begun.pop(number))
                    free.append(opened[number])
            if now > seconds + ANSWER_SECONDS:
                raise TimeoutError(f"{len(due) + len(begun)} requests have no answer")
    return times


def main() -> None:
    address, path, body, rate, seconds, *headers = sys.argv[1:]
    content = pathlib.Path(body[1:]).read_bytes() if body.startswith("@") else body.encode()
    print_figures(
        lambda: load(address, path, content, float(rate), float(seconds), headers or JSON),
        float(seconds),
    )


if __name__ == "__main__":
    main()
