"""Add the flags of `tensorflow_model_server` to a parser of arguments.

TF: tsl/util/command_line_flags.cc (`--flag=value`; a boolean may stand alone)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from server.commands.model_server_flags import FLAGS


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add every flag; the value of one that is not given is None."""
    for flag in FLAGS:
        text = flag.note
        if flag.treatment != "honoured":
            reason = "no effect here" if flag.treatment == "no effect" else "refused"
            text = f"{reason}: {text}"
        text = text.replace("%", "%%")
        if flag.kind == "bool":
            parser.add_argument(
                f"--{flag.name}", type=_boolean, nargs="?", const=True, metavar="BOOL", help=text
            )
        else:
            # Fractions of a second are accepted too.
            read = float if flag.name.endswith("_seconds") else _READERS[flag.kind]
            parser.add_argument(f"--{flag.name}", type=read, metavar=flag.kind.upper(), help=text)


def _boolean(text: str) -> bool:
    """Parse the value of a boolean flag, in TensorFlow's spellings and as 0 or 1."""
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"expected true or false, got {text!r}")
    return values[text.lower()]


def _integer(bits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected an integer, got {text!r}") from None
        if not -(1 << bits) <= number < 1 << bits:
            raise argparse.ArgumentTypeError(f"{text} does not fit into {bits + 1} bits")
        return number

    return read


_READERS: Mapping[str, Callable[[str], Any]] = {
    "int32": _integer(31),
    "int64": _integer(63),
    "float": float,
    "string": str,
}
