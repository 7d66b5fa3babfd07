"""The clients of a mixed load: threads that send a request of a front every so often."""

from __future__ import annotations

import itertools
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence

import numpy as np

from bench.mixed_load.models import CHANGING
from bench.mixed_load.sender import HALF, PREDICTIONS, SESSIONS, Address, Call, Sender
from bench.mixed_load.tally import ELSEWHERE, Tally
from bench.soak.record import Failed, WrongAnswer
from bench.soak.repeating_thread import RepeatingThread

READY_POLL_SECONDS = 0.05
DRAINS = "draining"  # in the text of what a server that drains refuses
OFFSET = 2.0  # of half_plus_two


class Versions:
    """Which versions of the changing model may answer now; one thread writes it."""

    def __init__(self) -> None:
        self.allowed: frozenset[float] = frozenset({1.0})


def check_line(y: Sequence[float], x: np.ndarray, offsets: frozenset[float]) -> None:
    """Raise WrongAnswer unless y = x / 2 + one of the offsets."""
    if not any(np.array_equal(np.float32(y), x / 2 + np.float32(each)) for each in offsets):
        raise WrongAnswer(f"{str(y)[:200]} is not x / 2 + one of {sorted(offsets)}")


class FrontClient(RepeatingThread):
    """Sends requests of one front to a server, to both tiny models in turn."""

    def __init__(
        self, tally: Tally, address: Address, front: str, versions: Versions, interval: float
    ) -> None:
        super().__init__()
        self._tally, self._address, self._front = tally, address, front
        self._versions, self._interval = versions, interval

    def _run(self) -> None:
        sender = Sender(self._address)
        due = time.monotonic()
        for model in itertools.cycle((HALF, CHANGING)):
            if self._stop.wait(max(0.0, due - time.monotonic())):
                break
            due = max(due + self._interval, time.monotonic())
            sender.model = model
            with self._tally.watched(self._front):
                for _ in self._answers(sender):
                    self._tally.add(self._front)
        sender.close()

    def _answers(self, sender: Sender) -> Iterator[None]:
        if self._front == SESSIONS:
            yield from sender.session()
            return
        before = self._versions.allowed
        for y in PREDICTIONS[self._front](sender):
            now = before | self._versions.allowed
            check_line(y or [], sender.x, frozenset({OFFSET}) if sender.model == HALF else now)
            yield


class Balancer:
    """Which server gets a request: the second while its /readyz is 200, else the first.

    `second` is set and cleared by the thread that starts and drains the second server. Thread-safe.
    """

    def __init__(self, first: Address) -> None:
        self.first = first
        self._lock = threading.Lock()  # guards the second server
        self._second: Address | None = None
        self._is_ready = False

    def set_second(self, address: Address | None) -> None:
        """Watch another second server, or none."""
        with self._lock:
            self._second, self._is_ready = address, False

    def choose(self) -> Address:
        """Return where to send a request."""
        with self._lock:
            return self._second if self._second is not None and self._is_ready else self.first

    def poll(self) -> bool:
        """Request the second server's /readyz; return whether it is ready."""
        with self._lock:
            address = self._second
        if address is None:
            return False
        is_ready = answers_200(f"{address.http}/readyz")
        with self._lock:
            if self._second is address:
                self._is_ready = is_ready
        return is_ready

    def refused(self, address: Address) -> None:
        """Send nothing more to a server that drains, until /readyz is 200 again."""
        with self._lock:
            if self._second is address:
                self._is_ready = False


def answers_200(url: str) -> bool:
    """Return whether a GET is answered with 200."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:  # an HTTPError is one too
        return False


class ReadyPoll(RepeatingThread):
    """Polls /readyz of the second server."""

    def __init__(self, balancer: Balancer) -> None:
        super().__init__()
        self._balancer = balancer

    def _run(self) -> None:
        while not self._stop.wait(READY_POLL_SECONDS):
            self._balancer.poll()


class BalancedClient(RepeatingThread):
    """Sends predictions of one front to where the balancer says.

    What a server refuses because it drains, or because it is not there any more, is sent to the
    first server; what it has taken must be answered.
    """

    def __init__(
        self, tally: Tally, balancer: Balancer, front: str, interval: float, size: int = 3
    ) -> None:
        super().__init__()
        self._tally, self._balancer, self._interval = tally, balancer, interval
        self._call: Call = PREDICTIONS[front]
        self._front = f"{front}, balanced" + (f", {size:,} numbers" if size > 3 else "")
        self._x = np.arange(size, dtype=np.float32)
        self._senders: dict[Address, Sender] = {}

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            address = self._balancer.choose()
            with self._tally.watched(self._front):
                try:
                    self._send(address)
                except Failed as error:
                    if address == self._balancer.first or not is_refusal(error):
                        raise
                    self._tally.add(self._front, ELSEWHERE)
                    self._balancer.refused(address)
                    self._send(self._balancer.first)
        while self._senders:
            self._senders.popitem()[1].close()

    def _send(self, address: Address) -> None:
        for known in set(self._senders) - {address, self._balancer.first}:
            self._senders.pop(known).close()
        sender = self._senders.get(address)
        if sender is None:
            sender = self._senders[address] = Sender(address)
            sender.x = self._x
        for y in self._call(sender):
            check_line(y or [], self._x, frozenset({OFFSET}))
            self._tally.add(self._front)


def is_refusal(error: Failed) -> bool:
    """Return whether a server refused a request without having begun it."""
    text = str(error)
    if error.code in ("REFUSED", "NOT_SENT"):
        return True
    # The errors of v2 have no code but the status.
    is_unavailable = error.code in ("UNAVAILABLE", "503")
    return is_unavailable and (DRAINS in text or "Connection refused" in text)
