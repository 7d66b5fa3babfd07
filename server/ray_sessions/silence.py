"""ActorCalls: waiting for an actor for as long as it answers at all.

Ray tells when the process of an actor ends, but not when it hangs: calls of it wait for ever then.
A call may take long for good reasons, so it is not the call that has a time limit: while it waits,
the actor is asked something that it answers at once.

Guarantees: used from one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from runtime.errors import UnavailableError

_log = logging.getLogger(__name__)

QUIET_SECONDS = 3.0  # after which an actor that has not answered a call is asked whether it runs
PROBE_SECONDS = 7.0  # until it must have said so


class SilentError(UnavailableError):
    """An actor does not answer, although its process has not ended."""


class ActorCalls:
    """The calls of one actor; `probe` begins one that it answers at once.

    Errors of the class `ended` say that the actor can't answer any more.
    """

    def __init__(self, probe: Callable[[], Any], ended: type[Exception]) -> None:
        self._probe = probe
        self._ended = ended
        self._probing: asyncio.Future[Any] | None = None

    async def answer_of(self, reference: Any) -> Any:
        """Return what a call returns; raise SilentError if the actor answers nothing meanwhile.

        The call itself goes on then, as when this method is cancelled. If the actor has ended, it
        raises what the probe does: of a node that has died, Ray awaits a large answer for 15 s.
        Other faults of a probe say nothing of the actor.
        """
        waiting: asyncio.Future[Any] = reference.as_future()
        try:
            while not (await asyncio.wait((waiting,), timeout=QUIET_SECONDS))[0]:
                probing = self._asked()
                await asyncio.wait(
                    (waiting, probing),
                    timeout=PROBE_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if waiting.done():
                    break
                if not probing.done():
                    raise SilentError(
                        f"No answer in {QUIET_SECONDS + PROBE_SECONDS:g} s, nor to a ping"
                    )
                fault = probing.exception()
                if isinstance(fault, self._ended):
                    raise fault
                if fault is not None:
                    _log.info("It can't be asked whether an actor runs: %r", fault)
            return waiting.result()
        finally:
            waiting.cancel()

    def _asked(self) -> asyncio.Future[Any]:
        """Return the probe, which all calls that wait have in common."""
        if self._probing is None or self._probing.done():
            self._probing = self._begun()
            self._probing.add_done_callback(_retrieve)
        return self._probing

    def _begun(self) -> asyncio.Future[Any]:
        try:
            probing: asyncio.Future[Any] = self._probe().as_future()
        except Exception as error:
            probing = asyncio.get_running_loop().create_future()
            probing.set_exception(error)
        return probing


def _retrieve(probing: asyncio.Future[Any]) -> None:
    if not probing.cancelled():
        probing.exception()
