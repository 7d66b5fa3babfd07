"""When what the first predictions do not require is imported: after them.

The imports of grpc and of the HTTP framework wait for models that load quickly, and then for the
first requests. Both are bounded.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable
from typing import TypeVar

from server.app import Services

_log = logging.getLogger(__name__)
T = TypeVar("T")

FIRST_LOADS_SECONDS = 1.0
FIRST_REQUESTS_SECONDS = 0.5
AGAIN_SECONDS = 0.2  # between two attempts to import what the descriptors did not suffice for
QUIET_SECONDS = 0.05  # without a request, after which the first ones are taken to be over


async def first_requests(services: Services) -> None:
    """Wait until the first models are loaded and the requests that came meanwhile have ended.

    An import at the same time would delay both.
    """
    await asyncio.to_thread(services.models.wait_until_settled, FIRST_LOADS_SECONDS)
    for _ in range(round(FIRST_REQUESTS_SECONDS / QUIET_SECONDS)):
        ended = services.lifecycle.ended
        await asyncio.sleep(QUIET_SECONDS)
        if not services.lifecycle.in_flight and services.lifecycle.ended == ended:
            return


async def with_descriptors(work: Callable[..., T], *arguments: object) -> T:
    """Do work that opens files on another thread; again, while the process has no descriptors.

    The ports are open by then, and clients may have taken them all.
    """
    while True:
        try:
            return await asyncio.to_thread(work, *arguments)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            _log.warning("The server has not started wholly, and tries again: %s", error)
        await asyncio.sleep(AGAIN_SECONDS)
