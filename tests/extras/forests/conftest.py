"""These tests require the extra `forests`."""

import pytest

pytest.importorskip("ydf", reason="requires the extra: pip install 'runstep[forests]'")
