"""`runstep version`: print the version."""

from __future__ import annotations

import platform

from server.package import package_version


def version() -> int:
    """Print the versions that a bug report should contain."""
    print(f"runstep {package_version()} (Python {platform.python_version()})")
    return 0
