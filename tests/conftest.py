"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# No test is about time: a machine that is busy fails nothing. The same examples every time, so that
# a failure is the change's that was made; `make fuzz-properties` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None)
settings.load_profile("same")
