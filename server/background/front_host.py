"""FrontHost: the one process of a server, which may have a background process beside it.

The folder of their sockets is made for the first background process. Until then there is nobody to
exclude or to tell, and what later processes must know of the models is kept in memory: a server
without a background process leaves no file, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator

from server.host import Change
from server.processes.folder_config import FolderConfig
from server.processes.host_table import HostTable
from server.processes.session_ids import Place
from server.processes.socket_files import folder_for_sockets
from server.processes.worker_host import WorkerHost


class FrontHost(WorkerHost):
    """The first and only worker."""

    def __init__(self, table: HostTable) -> None:
        folder = folder_for_sockets() / f"runstep-{secrets.token_hex(8)}"
        super().__init__(table, Place(0, 0), folder)
        self.model_config = self._config = FolderConfig(folder, 0, has_folder=False)
        self.id_suffix = ""  # sessions in this process have the ids of a server without others
        self._turn = asyncio.Lock()  # held during a change, and while the folder is made
        self._has_folder = False
        self._early: list[Change] = []  # made before there was the folder

    async def make_folder(self) -> None:
        """Make the folder, which only this user can open; raise OSError if that is impossible."""
        async with self._turn:
            if self._has_folder:
                return
            self.folder.mkdir(mode=0o700)
            self._has_folder = True
            self._config.begin_folder()
            for change in self._early:
                super().record(change)

    def removes_sockets(self, *, is_orphan: bool) -> bool:
        """Return whether this process is to remove the folder when it ends."""
        return True

    def remove_sockets(self) -> None:
        """Remove the folder, if it was made."""
        if self._has_folder:
            super().remove_sockets()

    @contextlib.asynccontextmanager
    async def change_turn(self) -> AsyncIterator[None]:
        """Exclude changes by the background process."""
        async with self._turn:
            if not self._has_folder:
                yield
                return
            async with super().change_turn():
                yield

    def record(self, change: Change) -> None:
        """Keep a change for a background process that starts later."""
        if self._has_folder:
            super().record(change)
        else:
            self._early.append(change)
