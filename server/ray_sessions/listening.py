"""A process that answers the questions of the Switchboard in an application's directory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import ray

from runtime.errors import OpError
from runtime.ray_api import NAMESPACE, as_ray_error, content_of
from server.access.caller import Caller, caller_of
from server.ray_sessions.host_ids import directory_name

_log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


async def listen(
    application: str, origin: Mapping[str, str], says: Mapping[str, Callable[[Caller], Any]]
) -> None:
    """Answer for ever; `says` has what this process says to a caller, by what is asked."""
    answered: tuple[int, Any] | None = None
    directory: Any = None
    while True:
        try:
            if directory is None:
                name = directory_name(application)
                directory = await asyncio.to_thread(ray.get_actor, name, NAMESPACE)
            asked = content_of(await directory.listen.remote(dict(origin), answered))
        except ValueError:  # no front has started the directory yet
            await asyncio.sleep(RETRY_SECONDS)
            continue
        except Exception as error:
            _log.info("%s", as_ray_error(error, "the directory of sessions").message)
            directory, answered = None, None
            await asyncio.sleep(RETRY_SECONDS)
            continue
        answered = None
        if asked is not None:
            number, what, owner, roles = asked
            try:
                answered = number, says[what](caller_of(owner, roles))
            except (OpError, KeyError) as error:
                _log.warning("%s can't be said: %r", what, error)
                answered = number, None
