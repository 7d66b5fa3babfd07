"""Directory: which session hosts there are, how many sessions each has, and how others ended.

Pure state: whoever has it knows the actors and the clock. Instants are seconds of any clock.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from typing import Any

from runtime.errors import ResourceExhaustedError

RESERVED_SECONDS = 120.0  # a place of a session that has not come by then is free again
MAX_ENDED = 10_000
MAX_ENDED_KEPT = 100  # over an end of the directory


@dataclasses.dataclass(slots=True)
class HostRecord:
    """A session host; `sessions` is what it has told, `reserved` are places by ticket."""

    id: str
    node_id: str
    address: str
    used_at: float
    sessions: int = 0
    reserved: dict[int, float] = dataclasses.field(default_factory=dict)

    @property
    def taken(self) -> int:
        """The number of sessions, with those that are being opened."""
        return self.sessions + len(self.reserved)


class Directory:
    """The session hosts of one application. `max_open` is for all of them together."""

    def __init__(self, max_open: int) -> None:
        self.max_open = max_open
        self.hosts: dict[str, HostRecord] = {}
        self._ended: collections.OrderedDict[str, str] = collections.OrderedDict()
        self._tickets = itertools.count(1)

    def add(self, record: HostRecord) -> None:
        """Add a host."""
        self.hosts[record.id] = record

    def end(self, host_id: str, reason: str) -> None:
        """Note how a host ended, with which its sessions are lost."""
        if self.hosts.pop(host_id, None) is None:
            return
        self._ended[host_id] = reason
        while len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)

    def forget(self, host_id: str) -> None:
        """Remove a host that has had no session for so long that nobody asks for one."""
        self.hosts.pop(host_id, None)

    def ending_of(self, host_id: str) -> str | None:
        """Return how a host ended, or None if it has not, or is not known."""
        return self._ended.get(host_id)

    def on_node(self, node_id: str) -> HostRecord | None:
        """Return the host on a node."""
        return next((each for each in self.hosts.values() if each.node_id == node_id), None)

    def counts(self) -> dict[str, int]:
        """Return the number of sessions by node id."""
        return {each.node_id: each.taken for each in self.hosts.values()}

    def check_place(self, now: float) -> None:
        """Raise ResourceExhaustedError if there are as many sessions as there may be."""
        for record in self.hosts.values():
            late = [ticket for ticket, until in record.reserved.items() if until < now]
            for ticket in late:
                del record.reserved[ticket]
        if sum(each.taken for each in self.hosts.values()) >= self.max_open:
            raise ResourceExhaustedError(
                f"{self.max_open} sessions are open, which is the most (sessions.max_open)"
            )

    def reserve(self, host_id: str, now: float) -> int:
        """Reserve a place in a host, and return its ticket; raise what `check_place` raises."""
        self.check_place(now)
        record, ticket = self.hosts[host_id], next(self._tickets)
        record.reserved[ticket] = now + RESERVED_SECONDS
        record.used_at = now
        return ticket

    def note(self, host_id: str, sessions: int, tickets: list[int], now: float) -> None:
        """Note how many sessions a host has; the places of `tickets` are among them or free."""
        record = self.hosts.get(host_id)
        if record is None:
            return
        record.sessions, record.used_at = sessions, now
        for ticket in tickets:
            record.reserved.pop(ticket, None)

    def idle(self, since: float) -> list[HostRecord]:
        """Return the hosts that have had no session since an instant."""
        return [each for each in self.hosts.values() if not each.taken and each.used_at < since]

    # --- what is kept --------------------------------------------------------------------------

    def kept(self) -> dict[str, Any]:
        """Return what must not be lost, as JSON: which hosts there are, and how others ended."""
        there = {each.id: each.address for each in self.hosts.values()}
        ended = list(self._ended.items())[-MAX_ENDED_KEPT:]
        return {"hosts": there, "ended": dict(ended)}

    def restore(self, kept: dict[str, Any]) -> None:
        """Note what was kept; hosts that have not been found again have ended."""
        self._ended |= kept["ended"]
        for host_id, address in kept["hosts"].items():
            if host_id not in self.hosts:
                self._ended[host_id] = f"node {address}: it ended while the directory was away"
