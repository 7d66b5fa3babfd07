import json
import pathlib

from server.main import main

MODELS = pathlib.Path(__file__).parents[3] / "fixtures" / "saved_models"
HALF_PLUS_TWO = str(MODELS / "half_plus_two")


def run(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_export_freezes(capsys, tmp_path):
    out = tmp_path / "frozen"
    code, _, _ = run(capsys, "export", HALF_PLUS_TWO, out, "--freeze")
    assert code == 0
    code, printed, _ = run(capsys, "run", out, "--feed", "x=[2]")
    assert (code, json.loads(printed)["y"]["data"]) == (0, [3.0])
    code, _, error = run(capsys, "export", HALF_PLUS_TWO, out)
    assert code == 1
    assert "ALREADY_EXISTS: Export directory already exists, and isn't empty." in error
