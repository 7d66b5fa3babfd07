"""The base of the sections of the settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section has no other keys than its own, and can't be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
