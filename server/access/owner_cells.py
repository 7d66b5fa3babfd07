"""What owners use of their limits, in memory that several processes can share.

A process writes its own elements of the arrays; balances are changed by `locked` code only.
"""

from __future__ import annotations

import contextlib
import ctypes

from server.settings import MAX_PROCESSES

DIGEST_BYTES = 16
_MOST_SLOTS = MAX_PROCESSES + 1  # with that of the background process


class BucketCell(ctypes.Structure):
    """The balance of a rate, and the instant at which it was computed; `is_used` once it is set."""

    _fields_ = (
        ("is_used", ctypes.c_int64),
        ("balance", ctypes.c_double),
        ("updated", ctypes.c_double),
    )

    is_used: int
    balance: float
    updated: float


class OwnerCell(ctypes.Structure):
    """What one owner uses: the balances of its rates, and running steps and sessions by process."""

    _fields_ = (
        ("digest", ctypes.c_uint8 * DIGEST_BYTES),  # of the owner's name; 0 if there is none
        ("requests", BucketCell),
        ("bytes", BucketCell),
        ("running", ctypes.c_int64 * _MOST_SLOTS),
        ("sessions", ctypes.c_int64 * _MOST_SLOTS),
    )

    digest: ctypes.Array[ctypes.c_uint8]
    requests: BucketCell
    bytes: BucketCell
    running: ctypes.Array[ctypes.c_int64]
    sessions: ctypes.Array[ctypes.c_int64]


class OwnerCells:
    """The cells of the owners of one process; `slot` is its element of the arrays."""

    slot = 0

    def cell(self, owner: str) -> OwnerCell:
        """Return the cell of an owner; the caller keeps it."""
        return OwnerCell()

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Exclude the other processes, for a few instructions."""
        return contextlib.nullcontext()


OF_ONE_PROCESS = OwnerCells()
