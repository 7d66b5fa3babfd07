import re

from server.main import main


def run(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_version(capsys):
    code, out, _ = run(capsys, "version")
    assert code == 0 and re.fullmatch(r"runstep \S+ \(Python 3\.\d+\.\d+\)\n", out)
