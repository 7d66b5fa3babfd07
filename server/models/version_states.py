"""The states of a model version, and its transitions; this module uses no threads and no clocks.

    START ──→ LOADING ──→ AVAILABLE ──→ UNLOADING ──→ END
      └───────────┴──────── given up, or no longer wanted ──→ END

Rule: availability is preserved. The last version that serves is unloaded only if another wanted
version serves, or if no version is wanted. A version that fails to load unloads no other version.

TF: tensorflow_serving/core/servable_state.h, availability_preserving_policy.cc
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection
from pathlib import Path

from runtime.errors import InternalError, OpError
from server.models.model_source import Files


class ModelState(enum.Enum):
    """The states of a model version, with TensorFlow Serving's names."""

    START = "START"
    LOADING = "LOADING"
    AVAILABLE = "AVAILABLE"
    UNLOADING = "UNLOADING"
    END = "END"


_NEXT: dict[ModelState, tuple[ModelState, ...]] = {
    ModelState.START: (ModelState.LOADING, ModelState.END),
    ModelState.LOADING: (ModelState.AVAILABLE, ModelState.END),
    ModelState.AVAILABLE: (ModelState.UNLOADING,),
    ModelState.UNLOADING: (ModelState.END,),
    ModelState.END: (ModelState.START,),
}


@dataclasses.dataclass(slots=True)
class VersionRecord:
    """The state of one version; `error` is the error of the last attempt to load it."""

    version: int
    path: Path
    state: ModelState = ModelState.START
    is_wanted: bool = True
    error: OpError | None = None
    attempts: int = 0
    retry_at: float | None = None  # monotonic instant of the next attempt, or None
    files: Files | None = None  # of the version when the last attempt began
    progress: Callable[[], dict[str, object]] | None = None  # of the load that runs now

    @property
    def has_failed(self) -> bool:
        """Whether the last attempt failed and no other is under way."""
        is_waiting = self.retry_at is not None or self.state is ModelState.END
        return self.is_wanted and self.error is not None and is_waiting

    def start_again(self) -> None:
        """Forget the attempts that failed, because the files have changed since."""
        self.attempts = 0
        if self.state is ModelState.END:
            self.move_to(ModelState.START)

    def end_unloading(self) -> None:
        """Record that the version is unloaded; start again if it has become wanted meanwhile.

        Its files are forgotten: they were noted while it was loaded, and so lie in the middle of
        the memory that is returned now.
        """
        self.move_to(ModelState.END)
        self.files = None
        if self.is_wanted:
            self.start_again()

    def move_to(self, state: ModelState) -> None:
        """Change the state; raise InternalError if the diagram does not have this transition."""
        if state not in _NEXT[self.state]:
            raise InternalError(
                f"Version {self.version} cannot go from {self.state.value} to {state.value}"
            )
        self.state = state


class Action(enum.Enum):
    """What to do next with a version."""

    LOAD = "load"
    UNLOAD = "unload"


def want(records: dict[int, VersionRecord], wanted: dict[int, Path]) -> None:
    """Set which versions are wanted; a version that ended while it was not wanted starts again.

    One that is still being unloaded starts again when it has ended: see `end_unloading`.
    """
    for version, path in wanted.items():
        record = records.get(version)
        if record is None or (record.state is ModelState.END and not record.is_wanted):
            records[version] = VersionRecord(version, path)
        else:
            record.is_wanted = True
            if record.state is ModelState.UNLOADING:
                record.path = path
    for version, record in records.items():
        if version not in wanted:
            record.is_wanted = False
            if record.state is ModelState.START or record.retry_at is not None:
                record.retry_at = None
                record.move_to(ModelState.END)


def next_action(records: Collection[VersionRecord]) -> tuple[Action, VersionRecord] | None:
    """Return the next load or unload that is due, or None.

    The caller must call again after each one.
    """
    wanted = [record for record in records if record.is_wanted]
    serving = [record for record in records if record.state is ModelState.AVAILABLE]
    superfluous = [record for record in serving if not record.is_wanted]
    is_served = len(superfluous) < len(serving)
    if superfluous and (not wanted or is_served or len(superfluous) > 1):
        return Action.UNLOAD, min(superfluous, key=lambda record: record.version)
    new = [record for record in wanted if record.state is ModelState.START]
    if new:
        return Action.LOAD, max(new, key=lambda record: record.version)
    return None
