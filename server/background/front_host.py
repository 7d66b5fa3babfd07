"""FrontHost: the one process of a server, which may have a background process beside it.

The folder of their sockets is made when it is first needed.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator

from server.host import Change
from server.processes.host_table import HostTable
from server.processes.session_ids import Place
from server.processes.worker_host import WorkerHost, folder_for_sockets


class FrontHost(WorkerHost):
    """The first and only worker."""

    def __init__(self, table: HostTable) -> None:
        folder = folder_for_sockets() / f"runstep-{secrets.token_hex(8)}"
        super().__init__(table, Place(0, 0), folder)
        self.id_suffix = ""  # sessions in this process have the ids of a server without others
        self.rpc_socket = None
        self._has_folder = False

    def make_folder(self) -> None:
        """Make the folder, which only this user can open; raise OSError if that is impossible."""
        if not self._has_folder:
            self.folder.mkdir(mode=0o700)
            self._has_folder = True

    def remove_sockets(self) -> None:
        """Remove the folder, if it was made."""
        if self._has_folder:
            super().remove_sockets()

    @contextlib.asynccontextmanager
    async def change_turn(self) -> AsyncIterator[None]:
        """Exclude changes by the background process."""
        self.make_folder()
        async with super().change_turn():
            yield

    def record(self, change: Change) -> None:
        """Keep a change for a background process that starts later."""
        self.make_folder()
        super().record(change)
