"""`runstep version`."""

from __future__ import annotations

import platform

from server.package import package_version


def version() -> int:
    """Print the versions that a report of a problem should have."""
    print(f"runstep {package_version()} (Python {platform.python_version()})")
    return 0
