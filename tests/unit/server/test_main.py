import argparse
import errno
import re

import pytest

from server.main import main


@pytest.mark.parametrize(
    "arguments", [[], ["frob"], ["show"], ["serve", "--port=x"], ["key", "x"], ["--frob"]]
)
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: runstep" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--prot=1"], "unrecognized arguments: --prot=1 (did you mean --port?)"),
        (["bench", "x", "--caller"], "argument --callers: expected one argument"),
        (["show", "x", "--tag_s=1"], "unrecognized arguments: --tag_s=1 (did you mean --tags?)"),
        (["key", "zzz"], "runstep key: error: unrecognized arguments: zzz"),
    ],
)
def test_a_wrong_flag_names_the_command_and_what_may_be_meant(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    err = capsys.readouterr().err
    assert f"usage: runstep {arguments[0]} " in err and message in err


def test_version_without_a_command(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert re.match(r"runstep [\w.]+ \(Python ", capsys.readouterr().out)


@pytest.mark.parametrize("command", ["show", "run", "bench", "export"])
def test_a_file_is_no_folder(command, capsys):
    output = ["out"] if command == "export" else []
    assert main([command, __file__, *output]) == 1
    err = capsys.readouterr().err
    assert err == f"runstep: INVALID_ARGUMENT: {__file__} is a file; a SavedModel is a folder\n"


def test_what_the_system_refuses_a_server_is_not_said_of_its_output(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused(options: argparse.Namespace) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("server.commands.serve.serve", refused)
    for name in ("signal.signal", "gc.disable"):
        monkeypatch.setattr(name, lambda *_: None)
    monkeypatch.setattr("server.main._discard_output", lambda: None)
    assert main(["serve"]) == 1
    assert capfd.readouterr().err == "runstep: UNKNOWN: the system; Function not implemented\n"
