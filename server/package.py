"""The installed package: its version."""

from __future__ import annotations

from importlib import metadata


def package_version() -> str:
    """The version of the installed package; `unknown` in a checkout that is not installed."""
    try:
        return metadata.version("runstep")
    except metadata.PackageNotFoundError:
        return "unknown"
