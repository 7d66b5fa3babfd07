"""The base of the sections of the settings."""

from __future__ import annotations

from pydantic import BaseModel, BeforeValidator, ConfigDict

# In front of a type that has the word "off": YAML reads the bare word as false.
READS_OFF = BeforeValidator(lambda value: "off" if value is False else value)


class Section(BaseModel):
    """A section has no other keys than its own, and can't be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
