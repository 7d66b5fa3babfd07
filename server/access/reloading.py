"""Read the files of keys again when they change."""

from __future__ import annotations

import asyncio
import logging

from runtime.errors import OpError
from server.access.access import Access
from server.file_watch import FileWatch

_log = logging.getLogger(__name__)
RELOAD_SECONDS = 1.0  # the time between two looks at the files


async def reload_keys(access: Access) -> None:
    """Read the files again whenever one changes, until cancelled.

    A file that is wrong changes nothing; the reason is logged.
    """
    watch = FileWatch(access.files())
    while access.files():
        await asyncio.sleep(RELOAD_SECONDS)
        if await asyncio.to_thread(watch.has_changed):
            await reload_once(access)


async def reload_once(access: Access) -> None:
    """Read the files, and decide by them from now on if they are right."""
    try:
        knowledge = await asyncio.to_thread(access.read)
    except OpError as error:
        _log.error("The keys are unchanged, because a file is wrong: %s", error.message)
    else:
        access.use(knowledge)
        _log.info("The keys were read again")
