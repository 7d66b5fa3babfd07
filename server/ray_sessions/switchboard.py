"""Switchboard: questions to processes that can't be called: the fronts and replicas of Ray Serve.

Ray Serve decides which replica gets a call, and a call may wait there until others have ended. So
each *listener* asks what it is asked, and brings the answer with its next call.

Guarantees: used from one event loop. A listener that does not answer in time is told of, and left
out after SILENT_SECONDS.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import time
from typing import Any

LISTEN_SECONDS = 20.0  # until a listener asks again
SILENT_SECONDS = 60.0
Origin = dict[str, str]  # the labels of a process
Question = tuple[int, str, str | None, list[str]]  # number, what, and for which owner and roles


class _Listener:
    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.heard_at = 0.0
        self.asked: collections.deque[Question] = collections.deque()
        self.is_asked = asyncio.Event()
        self.answers: dict[int, asyncio.Future[Any]] = {}


class Switchboard:
    """The listeners of an application."""

    def __init__(self) -> None:
        self._listeners: dict[tuple[tuple[str, str], ...], _Listener] = {}
        self._numbers = itertools.count(1)

    async def listen(self, origin: Origin, answered: tuple[int, Any] | None) -> Question | None:
        """Note a listener's answer, and return its next question; None after LISTEN_SECONDS."""
        key = tuple(sorted(origin.items()))
        listener = self._listeners.setdefault(key, _Listener(origin))
        listener.heard_at = time.monotonic()
        if answered is not None:
            number, content = answered
            answer = listener.answers.pop(number, None)
            if answer is not None and not answer.done():
                answer.set_result(content)
        try:
            async with asyncio.timeout(LISTEN_SECONDS):
                while not listener.asked:
                    listener.is_asked.clear()
                    await listener.is_asked.wait()
        except TimeoutError:
            return None
        finally:
            listener.heard_at = time.monotonic()
        return listener.asked.popleft()

    async def ask(
        self, but: Origin, what: str, owner: str | None, roles: list[str], seconds: float
    ) -> list[tuple[Origin, Any]]:
        """Return what each listener `but` one says; None for one that has not within `seconds`."""
        silent = time.monotonic() - SILENT_SECONDS
        for key in [key for key, each in self._listeners.items() if each.heard_at < silent]:
            del self._listeners[key]
        asked = [each for each in self._listeners.values() if each.origin != but]
        answers = await asyncio.gather(
            *(self._ask(each, (what, owner, roles), seconds) for each in asked)
        )
        return [(each.origin, answer) for each, answer in zip(asked, answers, strict=True)]

    async def _ask(
        self, listener: _Listener, asked: tuple[str, str | None, list[str]], seconds: float
    ) -> Any:
        number = next(self._numbers)
        question: Question = (number, *asked)
        answer = listener.answers[number] = asyncio.get_running_loop().create_future()
        listener.asked.append(question)
        listener.is_asked.set()
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            return None
        finally:
            listener.answers.pop(number, None)
            if question in listener.asked:
                listener.asked.remove(question)
