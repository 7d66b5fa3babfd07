"""What a client of a soak does: kinds of work, chosen at random by weight."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence

from bench.soak.client import Client
from bench.soak.record import Record
from bench.soak.repeating_thread import RepeatingThread


@dataclasses.dataclass(frozen=True)
class Work:
    """A kind of work: `do` makes a few requests and checks their answers.

    `do` raises WrongAnswer or Failed. The part of the name before the colon is its column in the
    table over time.
    """

    name: str
    weight: float
    do: Callable[[Client], None]


class Worker(RepeatingThread):
    """A thread that does work between `start` and `stop`, again and again if need be.

    `make` is called at each start, so that what the work keeps open (sessions, connections) is of
    that time only; `end` closes it.
    """

    def __init__(
        self,
        record: Record,
        address: str,
        seed: int,
        work: Sequence[Work],
        end: Callable[[Client], None] = lambda client: None,
    ) -> None:
        super().__init__()
        self._record = record
        self._client = Client(address, record)
        self._choose = random.Random(seed)
        self._work = work
        self._end = end

    def stop(self) -> None:
        """Wait for the last work, and close what it kept open."""
        super().stop()
        self._client.close()

    def _run(self) -> None:
        # First every kind once.
        for work in self._work:
            self._do(work)
        weights = [work.weight for work in self._work]
        while not self._stop.is_set():
            self._do(self._choose.choices(self._work, weights)[0])
        self._client.kind = self._work[0].name
        with self._record.watched(self._client.kind):
            self._end(self._client)

    def _do(self, work: Work) -> None:
        self._client.kind = work.name
        with self._record.watched(work.name):
            work.do(self._client)
