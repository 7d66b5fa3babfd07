"""The settings of priorities: the pool of each, and the limits of its steps."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from server.settings_sections.numbers import Count, Milliseconds


class PrioritySettings(BaseModel):
    """One entry of `priorities`: a pool and limits, or a string, which is the pool alone.

    `timeout_ms` is the longest that a step may take, the time in queues included; 0 means no limit.
    `queue_size` is the number of steps of this priority that may wait at the same time; None means
    that only the queue of the pool is limited.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pool: str
    timeout_ms: Milliseconds = Field(default=0, ge=0)
    queue_size: Count | None = Field(default=None, ge=1)


def _entry(value: Any) -> Any:
    return {"pool": value} if isinstance(value, str) else value


PriorityEntry = Annotated[PrioritySettings, BeforeValidator(_entry)]


def default_priorities() -> dict[str, PrioritySettings]:
    """Return the priorities of a server without any in its configuration."""
    return {
        "normal": PrioritySettings(pool="online"),
        "low": PrioritySettings(pool="background"),
    }
