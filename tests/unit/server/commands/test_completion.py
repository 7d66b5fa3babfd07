import os
import shutil
import subprocess

import pytest

from server.commands.completion import SHELLS, commands_of
from server.main import _parser, main


@pytest.fixture
def script(capsys):
    def printed(shell):
        assert main(["completion", shell]) == 0
        return capsys.readouterr().out

    return printed


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_flag_is_in_the_script(script, shell):
    text = script(shell)
    commands = commands_of(_parser())
    names = ["serve", "show", "run", "bench", "export", "deploy", "key", "completion", "version"]
    assert sorted(names) == sorted(command.name for command in commands)
    for command in commands:
        assert command.name in text
        for flag in command.options:
            for name in flag.names:
                assert (name.lstrip("-") if shell == "fish" else name) in text


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_reads_the_script(script, shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    path = tmp_path / "script"
    path.write_text(script(shell))
    result = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, timeout=30)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.fixture
def complete(script, tmp_path):
    """What bash completes in a folder with the file `a file.json` and the folder `a folder`."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    (tmp_path / "a file.json").touch()
    (tmp_path / "a folder").mkdir()
    text = script("bash")

    def completed(*words):
        call = (
            'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _runstep; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        result = subprocess.run(
            ["bash", "--norc", "-c", f"{text}\n{call}", "bash", "runstep", *words],
            capture_output=True, text=True, timeout=30, cwd=tmp_path,
        )  # fmt: skip
        assert result.returncode == 0 and result.stderr == ""
        return result.stdout.split("\n")[:-1]

    return completed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["b"], ["bench"]),
        (["s"], ["serve", "show"]),
        (["bench", "--se"], ["--seconds"]),
        (["bench", "--protocol", ""], ["rest", "v2", "grpc"]),
        (["bench", "--protocol", "=", "g"], ["grpc"]),
        (["bench", "--protocol", "="], ["rest", "v2", "grpc"]),
        (["serve", "--enable_batching", "t"], ["true"]),
        (["serve", "--enable_batching", "--enable_b"], ["--enable_batching"]),
        (["run", "a f"], ["a folder"]),
        (["run", "--output", "a f"], ["a file.json", "a folder"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["bench", "--seconds", ""], [""]),
        (["nothing", "--"], [""]),
    ],
)
def test_bash_completes(complete, words, expected):
    assert sorted(complete(*words)) == sorted(expected)


def test_bash_finds_the_completion_of_the_program(script, tmp_path):
    """As an interactive shell does: `complete` names the function for the program."""
    path = tmp_path / "runstep.bash"
    path.write_text(script("bash"))
    result = subprocess.run(
        ["bash", "--norc", "-c", 'source "$1"; complete -p runstep', "bash", path],
        capture_output=True, text=True, timeout=30, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert result.stdout == "complete -F _runstep runstep\n", result.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("runstep b", ["bench"]),
        ("runstep bench --se", ["--seconds"]),
        ("runstep bench --protocol=", ["--protocol=grpc", "--protocol=rest", "--protocol=v2"]),
        ("runstep run a", ["a folder/"]),
        ("runstep completion ", ["bash", "fish", "zsh"]),
    ],
)
def test_fish_completes(script, tmp_path, line, expected):
    if shutil.which("fish") is None:
        pytest.skip("needs fish")
    (tmp_path / "a file").touch()
    (tmp_path / "a folder").mkdir()
    result = subprocess.run(
        ["fish", "-N", "-c", f"{script('fish')}\ncomplete -C '{line}'"],
        capture_output=True, text=True, timeout=30, cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert [each.split("\t")[0] for each in result.stdout.splitlines()] == expected


def test_quotes_of_a_help_are_escaped(capsys):
    import argparse

    from server.commands.completion import completion

    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers().add_parser("go", help="it's [so]: 100%%")
    sub.add_argument("--x", help="isn't \\ [y]: 5%%")
    for shell, quoted in (
        ("zsh", "--x=[isn'\\''t \\\\ \\[y\\]\\: 5%]:value: "),
        ("fish", "'isn\\'t \\\\ [y]: 5%'"),
    ):
        completion(parser, shell)
        assert quoted in capsys.readouterr().out


def test_an_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["completion", "csh"])
    assert caught.value.code == 2
    assert "invalid choice: 'csh'" in capsys.readouterr().err
