import json
import os
import pathlib
import re
import signal
import threading

import pytest

from server.commands.load.folder_target import FolderTarget
from server.main import main

MODELS = pathlib.Path(__file__).parents[3] / "fixtures" / "saved_models"
HALF_PLUS_TWO = str(MODELS / "half_plus_two")
SHORT = ("--seconds", "0.05", "--warmup", "0")


def bench(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    code = main(["bench", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_folder_is_loaded_and_its_steps_are_measured(capsys):
    code, out, _ = bench(capsys, HALF_PLUS_TWO, *SHORT, "--batch", 3)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == f"steps of {HALF_PLUS_TWO} in this process"
    assert lines[1] == "0.05 s, 1 caller; each calls again when it is answered"
    count = re.match(r"(\d+) requests in 0\.\d\d s: [\d.]+ a second; 0 failed$", lines[2])
    assert count and int(count[1]) > 0
    assert lines[3].startswith("latency: p50 ")
    assert sum(int(line.split()[-1]) for line in lines[5:]) == int(count[1])


def test_steps_that_are_due_at_a_rate(capsys):
    code, out, _ = bench(capsys, HALF_PLUS_TWO, *SHORT, "--rate", 200, "--callers", 2)
    assert code == 0
    assert "0.05 s, 2 callers; 200 calls a second, measured from the time each is due" in out


def test_the_inputs_of_a_file(capsys, tmp_path):
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"inputs": {"x": [[1.0], [2.0]]}}))
    assert bench(capsys, HALF_PLUS_TWO, *SHORT, "--json", file)[0] == 0


def test_an_example_that_the_model_refuses(capsys):
    classify = (HALF_PLUS_TWO, *SHORT, "--signature", "classify_x_to_y")
    code, _, err = bench(capsys, *classify)
    assert code == 1
    assert "UNAVAILABLE: The first request failed with INVALID_ARGUMENT: " in err
    assert "It was made from the signature; --json gives another" in err


def test_a_failed_step_is_an_exit_code(capsys, monkeypatch):
    from server.commands.load.target import CallFailed

    calls = iter([None])

    def call(self):
        if next(calls, "end") == "end":
            raise CallFailed("INTERNAL", "broken")

    monkeypatch.setattr(FolderTarget, "__call__", call)
    code, out, _ = bench(capsys, HALF_PLUS_TWO, *SHORT)
    assert code == 1
    assert re.search(r" \d+ failed\n  \d+ × INTERNAL: broken\n", out)


def test_ctrl_c_prints_what_was_measured(capsys, monkeypatch):
    step = FolderTarget.__call__
    calls = iter(range(50))

    def call(self):
        if next(calls, 50) == 49:
            os.kill(os.getpid(), signal.SIGINT)
        step(self)

    monkeypatch.setattr(FolderTarget, "__call__", call)
    assert threading.current_thread() is threading.main_thread()
    code, out, _ = bench(capsys, HALF_PLUS_TWO, "--seconds", 100, "--warmup", 0)
    assert code == 1
    assert re.search(r"^\d+ requests in \d", out, re.MULTILINE)
    assert re.search(r"^stopped after [\d.]+ s of 100 s$", out, re.MULTILINE)
    assert "latency: p50 " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "NOT_FOUND: There is no folder nowhere; a URL begins with http://"),
        ((MODELS.parent,), "holds no SavedModel (saved_model.pb or saved_model.pbtxt)"),
        ((HALF_PLUS_TWO, "--signature", "s"), "half_plus_two has no signature 's'; it has"),
        ((HALF_PLUS_TWO, "--model", "m"), "--model is for a URL; "),
        ((HALF_PLUS_TWO, "--header", "a: b"), "--header is for a URL; "),
        ((HALF_PLUS_TWO, "--seconds", "0"), "--seconds is from 0.01 to 86400, got 0"),
        ((HALF_PLUS_TWO, "--seconds", "nan"), "--seconds is from 0.01 to 86400, got nan"),
        ((HALF_PLUS_TWO, "--callers", "0"), "--callers is from 1 to 1024, got 0"),
        ((HALF_PLUS_TWO, "--rate", "-1"), "--rate is from 0.001 to 1e+06, got -1"),
        ((HALF_PLUS_TWO, "--json", "no.json"), "NOT_FOUND: Cannot read no.json"),
        (("http://127.0.0.1:1/v1/models/m", "--tags", "serve"), "--tags is for a folder"),
        (("http://127.0.0.1:1/v1/models/m", "--ca", "x"), "--ca is for https and grpcs"),
        (("https://127.0.0.1:1/v1/models/m", "--ca", "no.pem"), "Cannot read no.pem"),
        (("https://127.0.0.1:1/v1/models/m", "--ca", __file__), "has no certificates in PEM form"),
        (("http://127.0.0.1:1/v1/models/m", "--header", "x"), "--header needs NAME: VALUE"),
        (("http://127.0.0.1:1/v1/models/m",), "Cannot call 127.0.0.1:1: Connection"),
        (("http://127.0.0.1:1",), "Name the model in the URL or with --model"),
        (("grpc://127.0.0.1:1",), "Name the model in the URL or with --model"),
        (("grpc://127.0.0.1:1/m", "--timeout", "5"), "GetModelMetadata of model m at 127.0.0.1:1"),
        (("ftp://h",), "INVALID_ARGUMENT: ftp://h is none of the forms http://HOST:PORT/v1"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(capsys, arguments, message):
    code, out, err = bench(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("runstep: ") and message in err


def test_a_file_of_headers_that_is_no_text(capsys, tmp_path):
    file = tmp_path / "headers"
    file.write_bytes(b"\xb5\xff")
    code, _, err = bench(capsys, "http://127.0.0.1:1/v1/models/m", "--header", f"@{file}")
    assert code == 1 and "--header needs NAME: VALUE, or @FILE with such lines" in err


def test_wrong_flags_exit_with_2(capsys):
    for arguments in ([], [HALF_PLUS_TWO, "--rate=x"], [HALF_PLUS_TWO, "--frob"]):
        with pytest.raises(SystemExit) as caught:
            main(["bench", *arguments])
        assert caught.value.code == 2
        assert "usage: runstep" in capsys.readouterr().err
