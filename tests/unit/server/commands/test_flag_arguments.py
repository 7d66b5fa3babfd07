"""TensorFlow Serving's flags on the command line."""

from __future__ import annotations

import argparse

import pytest

from server.commands.flag_arguments import add_flags
from server.commands.model_server_flags import FLAGS, Flag

VALUES = {"bool": "true", "int32": "7", "int64": "7", "float": "0.5", "string": "text"}


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_flags(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_each_flag_is_taken_with_its_type(flag: Flag) -> None:
    value = getattr(parsed(f"--{flag.name}={VALUES[flag.kind]}"), flag.name)
    types = {"bool": bool, "int32": int, "int64": int, "float": float, "string": str}
    assert type(value) is (float if flag.name.endswith("_seconds") else types[flag.kind])


def test_a_boolean_may_stand_alone() -> None:
    given = parsed("--enable_batching", "--port=3")
    assert (given.enable_batching, given.port) == (True, 3)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("false", False), ("False", False), ("1", True)]
)
def test_spellings_of_booleans(text: str, value: bool) -> None:
    assert parsed(f"--enable_model_warmup={text}").enable_model_warmup is value


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("--enable_model_warmup=maybe", "expected true or false, got 'maybe'"),
        ("--port=x", "expected an integer, got 'x'"),
        ("--port=2147483648", "2147483648 does not fit into 32 bits"),
        ("--noenable_model_warmup", "unrecognized arguments: --noenable_model_warmup"),
        ("--enable_model", "unrecognized arguments: --enable_model"),
    ],
)
def test_wrong_arguments(argument: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(argument)
    assert text in capsys.readouterr().err
