"""`runstep version` and `--version`: print the version."""

from __future__ import annotations

import platform

from server.package import package_version


def version() -> int:
    """Print the versions that a bug report should contain."""
    print(f"runstep {package_version()} (Python {platform.python_version()})")
    return 0


def print_model_server_version() -> int:
    """Print the version in the form of `tensorflow_model_server --version`."""
    print(f"TensorFlow ModelServer: Runstep {package_version()}, with the flags of 2.20")
    print("TensorFlow Library: none, Runstep runs graphs without it")
    return 0
