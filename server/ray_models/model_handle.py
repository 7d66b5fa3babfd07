"""ModelHandle: the calls on the replicas of one model.

Ray Serve chooses between two replicas the one that has fewer requests. A request that a replica has
not taken goes to another one, or waits. One that a replica had when it ended is not repeated,
because a step may have changed the model's state; only what *reads* is, which runs no step.

Guarantees: used from one event loop. A call that is cancelled is cancelled in the replica.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.serve.exceptions import BackPressureError

from runtime.errors import (
    DeadlineExceededError,
    OpError,
    ResourceExhaustedError,
    UnavailableError,
)
from runtime.ray_api import as_ray_error, content_of
from server.passed_calls import PassedRequest, PassedResponse

_LOOK_SECONDS = 3.0
_READ_SECONDS = 10.0  # for the answer to what reads
_AGAIN_SECONDS = 5.0  # until another replica is asked for it
_QUIET_SECONDS = 10.0  # after an answer, in which a model is not asked whether it serves
_ENDED = (ray.exceptions.RayActorError, ray.exceptions.ActorUnavailableError)


class ModelHandle:
    """One model; `handle` is that of its deployment."""

    def __init__(self, name: str, handle: Any) -> None:
        self.name = name
        self._handle = handle
        self._answered_at = 0.0
        self.fault = f"model {name}: no replica has answered yet"  # why it does not serve, or ""

    async def call(self, request: PassedRequest, seconds: float | None = None) -> PassedResponse:
        """Pass a request to a replica, and return its response within some seconds.

        Raises UnavailableError if the replica ends meanwhile, or does not answer a GET within
        _READ_SECONDS; ResourceExhaustedError if too many requests wait for a replica; and
        DeadlineExceededError.
        """
        ask = self._read if request.method == "GET" else self._ask
        response: PassedResponse = await ask("call", (request,), seconds)
        return response

    async def rpc(
        self,
        path: str,
        data: bytes,
        metadata: Sequence[tuple[str, str]],
        seconds: float | None,
        *,
        reads: bool = False,
    ) -> bytes:
        """Pass a gRPC call, as `call` does a GET if it `reads`; raise its OpError too."""
        ask = self._read if reads else self._ask
        content: bytes = await ask("rpc", (path, data, metadata, seconds), seconds)
        return content

    async def look(self) -> None:
        """Note whether the model serves."""
        if time.monotonic() - self._answered_at < _QUIET_SECONDS and not self.fault:
            return
        try:
            waits = await self._ask("not_ready", (), _LOOK_SECONDS)
            self.fault = f"model {self.name}: {', '.join(waits)}" if waits else ""
        except ResourceExhaustedError:  # they serve, and have more than they can
            self.fault = ""
        except OpError as error:
            self.fault = f"model {self.name}: {error.message}"

    async def _read(self, method: str, arguments: tuple[Any, ...], seconds: float | None) -> Any:
        """Ask a replica, and once more, if it ends or does not answer, maybe another one."""
        limit = min(_READ_SECONDS, math.inf if seconds is None else seconds)
        until = time.monotonic() + limit
        try:
            try:
                return await self._ask(method, arguments, min(limit, _AGAIN_SECONDS))
            except (UnavailableError, DeadlineExceededError):
                left = until - time.monotonic()
                if left <= 0:
                    raise
            return await self._ask(method, arguments, left)
        except DeadlineExceededError:
            is_own = seconds is None or seconds > _READ_SECONDS
            kind = UnavailableError if is_own else DeadlineExceededError
            raise kind(f"No replica of model {self.name} has answered within {limit:g} s") from None

    async def _ask(self, method: str, arguments: tuple[Any, ...], seconds: float | None) -> Any:
        response = getattr(self._handle, method).remote(*arguments)
        try:
            async with asyncio.timeout(seconds):
                answer = await response
        except TimeoutError:
            response.cancel()
            raise DeadlineExceededError(
                f"No replica of model {self.name} has answered within {seconds:g} s"
            ) from None
        except asyncio.CancelledError:
            response.cancel()
            raise
        except Exception as error:
            raise self._error(error) from None
        self._answered_at = time.monotonic()
        return content_of(answer)

    def _error(self, error: Exception) -> OpError:
        if isinstance(error, BackPressureError):
            return ResourceExhaustedError(
                f"Too many requests wait for a replica of model {self.name} (ray.serve.max_queued)"
            )
        if isinstance(error, _ENDED):
            self._answered_at = 0.0
            return UnavailableError(
                f"A replica of model {self.name} ended while it had the request; "
                "whether the step ran is not known"
            )
        told = as_ray_error(error, f"a replica of model {self.name}")
        return told if isinstance(told, ResourceExhaustedError) else UnavailableError(told.message)
