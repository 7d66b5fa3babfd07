"""The version of the installed package."""

from __future__ import annotations

from importlib import metadata


def package_version() -> str:
    """Return the version of the installed package, or `unknown` if it is not installed."""
    try:
        return metadata.version("runstep")
    except metadata.PackageNotFoundError:
        return "unknown"
