"""HostMetrics: the metrics of the other processes of a server, of which no counter falls.

Guarantees: used from one event loop; the file of the counts is read and written by other threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from prometheus_client.metrics_core import Metric

from server.processes.merged_metrics import WireFamily, families_to_wire
from server.processes.seen_counts import SeenCounts
from server.processes.session_ids import Place


class Processes(Protocol):
    """What one process knows of the others."""

    processes: int
    place: Place
    folder: Path

    def place_in(self, slot: int) -> Place:
        """Return the place of the process that a slot has now."""

    async def answers(self, what: str) -> dict[Place, Any]:
        """Return what each other process says, of those that answer."""


class HostMetrics:
    """What the other processes of `host` count, those too that have ended."""

    def __init__(self, host: Processes) -> None:
        self._host = host
        # The process of a server of one adds counts up alone, and may have no folder.
        path = None if host.processes == 1 else host.folder / "counts.json"
        self._counts = SeenCounts(path, self._is_over)

    async def of_others(self, own: Sequence[Metric]) -> list[list[WireFamily]]:
        """Return the families of each other process, and what is missing of others.

        `own` are the families of this one.
        """
        answers = await self._host.answers("metrics")
        if not answers and self._counts.has_none:
            return []
        said = {_key(place): families for place, families in answers.items()}
        mine = {_key(self._host.place): families_to_wire(own)}
        return [*said.values(), *await asyncio.to_thread(self._counts.missing, said | mine)]

    def _is_over(self, key: str) -> bool:
        slot, generation = map(int, key.split("."))
        return self._host.place_in(slot).generation != generation


def _key(place: Place) -> str:
    return f"{place.slot}.{place.generation}"
