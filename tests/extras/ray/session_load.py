"""Clients of sessions that go on whatever is killed, and count what they get."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Sequence

import httpx

from tests.extras.ray.front_ends import SECONDS, counter_graph
from tests.ray_cluster import THINK_SECONDS

CONNECTION = "connection"  # in place of a status: it ended without a response
PAUSE_SECONDS = 0.05  # after a failed request


class SessionLoad:
    """Steps of one session, one after the other: each adds its number to a variable.

    If a connection ends, the client goes on with the next front end, as behind a load balancer. If
    the session is lost, it opens another one. What a step had done that failed is not known; all
    else is checked: each answer, and in the end the variable.
    """

    def __init__(self, fronts: Sequence[str]) -> None:
        self._fronts = collections.deque(fronts)
        self._client = self._connected()
        self.right = self.wrong = 0
        self.failed: collections.Counter[str] = collections.Counter()
        self.endings: list[str] = []  # why sessions were lost
        self.failed_at = self.answered_at = 0.0  # the first failure, and the first answer after it
        self._sum, self._doubtful = 0, {0}
        self.path = self._opened()  # or "", if it is lost
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _connected(self) -> httpx.Client:
        return httpx.Client(base_url=self._fronts[0], timeout=SECONDS)

    def _opened(self) -> str:
        answer = self._client.post("/v1/sessions", json={"graph_def": counter_graph()})
        answer.raise_for_status()
        path = str(answer.headers["location"])
        self._client.post(f"{path}:run", json={"targets": ["init"]}).raise_for_status()
        self._sum, self._doubtful = 0, {0}
        return path

    def _run(self) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            try:
                self._step(number)
            except httpx.TransportError:
                self._fail(CONNECTION, number)
                self._ended.wait(PAUSE_SECONDS)
                self._client.close()
                self._fronts.rotate()
                self._client = self._connected()
            except httpx.HTTPStatusError as error:
                self._fail(f"opening {error.response.status_code}", 0)

    def _step(self, number: int) -> None:
        self.path = self.path or self._opened()
        body = {"feeds": {"x:0": number}, "fetches": ["echo:0"], "targets": ["add"]}
        answer = self._client.post(f"{self.path}:run", json=body)
        if answer.status_code == 200:
            self._count(answer.json()["outputs"]["echo:0"]["data"] == number)
            self._sum += number
            self._ended.wait(THINK_SECONDS)
            return
        self._fail(str(answer.status_code), number)
        self._ended.wait(PAUSE_SECONDS)
        if answer.status_code == 410:
            self.endings.append(answer.json()["error"])
            self.path = ""

    def _fail(self, code: str, number: int) -> None:
        self.failed[code] += 1
        self.failed_at = self.failed_at or time.monotonic()
        self._doubtful |= {each + number for each in self._doubtful}

    def _count(self, is_right: bool) -> None:
        self.right, self.wrong = self.right + is_right, self.wrong + (not is_right)
        if self.failed_at and not self.answered_at:
            self.answered_at = time.monotonic()

    def end(self) -> None:
        """End, and check the variable, unless the session was lost just now."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join(SECONDS)
        if self.path:
            answer = self._client.post(f"{self.path}:run", json={"fetches": ["value:0"]})
            assert answer.status_code == 200, (answer.text, self.failed, self.endings)
            value = answer.json()["outputs"]["value:0"]["data"]
            self.wrong += value - self._sum not in self._doubtful
        self._client.close()
