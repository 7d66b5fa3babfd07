"""These tests require the extra `ray`; they start clusters whose addresses are all 127.0.0.1."""

import pytest

from tests.ray_cluster import HAS_RAY, WITHOUT_RAY

if not HAS_RAY:
    pytest.skip(WITHOUT_RAY, allow_module_level=True)
