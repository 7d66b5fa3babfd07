"""These tests require the extra `jax`."""

import pytest

pytest.importorskip("jaxlib", reason="requires the extra: pip install 'runstep[jax]'")
