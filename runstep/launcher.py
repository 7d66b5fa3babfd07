"""The programs `runstep` and `tensorflow_model_server`: check what Python finds, then start."""

from __future__ import annotations

import sys
from typing import NoReturn

from runstep.names import ShadowedError, check_names

EXIT_FAILED = 1


def runstep() -> NoReturn:
    """Run `runstep`, and end the process."""
    _check()
    from server.main import program

    program()


def tensorflow_model_server() -> NoReturn:
    """Run `tensorflow_model_server`, and end the process."""
    _check()
    from server.commands.model_server import program

    program()


def _check() -> None:
    try:
        check_names()
    except ShadowedError as error:
        print(f"runstep: {error}", file=sys.stderr)
        sys.exit(EXIT_FAILED)
