"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# No test is about time: a machine that is busy fails nothing.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
