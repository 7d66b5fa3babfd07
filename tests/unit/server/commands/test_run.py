import json
import pathlib
import re

import numpy as np
import pytest

from runtime.saved_model.cluster_report import SignatureClusters
from server.main import main

MODELS = pathlib.Path(__file__).parents[3] / "fixtures" / "saved_models"
HALF_PLUS_TWO = str(MODELS / "half_plus_two")


def run(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_run_by_signature_and_by_tensor_names(capsys):
    expected = {"dtype": "float32", "shape": [2, 1], "data": [[2.5], [3.0]]}
    code, out, _ = run(capsys, "run", HALF_PLUS_TWO, "--feed", "x=[[1], [2]]")
    assert code == 0 and json.loads(out) == {"y": expected}
    _, out, _ = run(capsys, "run", HALF_PLUS_TWO, "--feed", "x:0=[[1], [2]]", "--fetch", "y:0")
    assert json.loads(out) == {"y:0": expected}


@pytest.mark.parametrize("form", ["x.json", "x.npy", "x.npz"])
def test_run_reads_files(capsys, tmp_path, form):
    x = np.array([[1], [2]], np.float32)
    path = tmp_path / form
    if form == "x.json":
        path.write_text(json.dumps(x.tolist()))
    elif form == "x.npy":
        np.save(path, x)
    else:
        np.savez(path, ones=x)
    value = {"x.json": f"@{path}", "x.npy": path, "x.npz": f"{path}:ones"}[form]
    code, out, _ = run(capsys, "run", HALF_PLUS_TWO, "--feed", f"x={value}")
    assert code == 0 and json.loads(out)["y"]["data"] == [[2.5], [3.0]]


def test_run_writes_npz(capsys, tmp_path):
    path = tmp_path / "out.npz"
    arguments = ("--feed", "x=[[1]]", "--fetch", "y:0", "--output", path)
    code, out, _ = run(capsys, "run", HALF_PLUS_TWO, *arguments)
    assert (code, out) == (0, "")
    with np.load(path) as arrays:
        np.testing.assert_array_equal(arrays["y_0"], np.array([[2.5]], np.float32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "NOT_FOUND: There is no folder nowhere"),
        ((MODELS.parent,), "holds no SavedModel (saved_model.pb or saved_model.pbtxt)"),
        ((HALF_PLUS_TWO, "--feed", "x"), "INVALID_ARGUMENT: --feed needs NAME=VALUE, got 'x'"),
        (
            (HALF_PLUS_TWO, "--feed", "x=one"),
            "INVALID_ARGUMENT: The value of --feed x is not valid JSON",
        ),
        ((HALF_PLUS_TWO, "--feed", "x=[true]"), "Tensor x: Expected a number at element 0"),
        ((HALF_PLUS_TWO, "--feed", "x=@no.json"), "NOT_FOUND: Cannot read no.json"),
        ((HALF_PLUS_TWO, "--feed", "x=no.npy"), "NOT_FOUND: Cannot read no.npy"),
        ((HALF_PLUS_TWO, "--signature", "s"), "NOT_FOUND: There is no signature 's'; there are"),
        (
            (HALF_PLUS_TWO, "--signature", "s", "--feed", "z=[1]"),
            "NOT_FOUND: There is no signature 's'; there are classify_x_to_y, regress_x_to_y, "
            "regress_x_to_y2, serving_default. 'z' is no tensor of the graph either: ",
        ),
        (
            (HALF_PLUS_TWO, "--signature", "s", "--feed", "x:0=[[1]]", "--fetch", "z"),
            "serving_default. 'z' is no tensor of the graph either: ",
        ),
        (
            (HALF_PLUS_TWO, "--feed", "z=[1]"),
            "INVALID_ARGUMENT: 'z' is neither of signature serving_default (x) nor a tensor",
        ),
        ((HALF_PLUS_TWO, "--tags", "train"), "NOT_FOUND: Could not find meta graph def"),
    ],
)
def test_run_says_what_is_wrong(capsys, arguments, message):
    code, _, err = run(capsys, "run", *arguments)
    assert code == 1
    assert err.startswith("runstep: ") and message in err


@pytest.mark.parametrize(
    ("name", "content", "feed", "message"),
    [
        ("x.npy", b"", "x.npy", "x.npy is not a numpy file: "),
        ("x.npy", b"\x93NUMPY\x01\x00", "x.npy", "x.npy is not a numpy file: "),
        ("x.npz", b"", "x.npz:a", "x.npz is not a numpy file: "),
        ("x.npz", b"PK\x03\x04", "x.npz:a", "x.npz is not a numpy file: "),
        ("x.npz", [1.0], "x.npz:a", "x.npz is a .npy file, which has one array without a name"),
        ("x.npy", {"a": [1.0]}, "x.npy", "x.npy is an .npz file; name it so, and an array"),
        ("x.npz", {"a": np.array([{}])}, "x.npz:a", "Cannot read 'a' of x.npz: Object arrays"),
    ],
)
def test_files_that_are_not_what_they_are_called(
    capsys, tmp_path, monkeypatch, name, content, feed, message
):
    monkeypatch.chdir(tmp_path)
    with open(name, "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        elif isinstance(content, dict):
            np.savez(file, **content)
        else:
            np.save(file, np.array(content))
    code, _, err = run(capsys, "run", HALF_PLUS_TWO, "--feed", f"x={feed}")
    assert (code, err.startswith(f"runstep: INVALID_ARGUMENT: {message}")) == (1, True)


def test_an_input_is_fed_once(capsys):
    code, _, err = run(capsys, "run", HALF_PLUS_TWO, "--feed", "x=[1]", "--feed", "x=[2]")
    assert (code, err) == (1, "runstep: INVALID_ARGUMENT: --feed gives x more than once\n")


def test_run_writes_a_timeline(capsys, tmp_path):
    trace = tmp_path / "trace.json"
    code, _, _ = run(capsys, "run", HALF_PLUS_TWO, "--feed", "x=[2]", "--trace", trace)
    events = json.loads(trace.read_text())["traceEvents"]
    spans = {event["args"]["name"]: event for event in events if event["ph"] == "X"}
    assert code == 0
    assert spans["y"]["args"]["op"] == "AddV2"
    assert spans["y"]["args"]["output:0"] == "float32[1]"


def test_run_says_what_was_slow_and_writes_no_file(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "run", HALF_PLUS_TWO, "--feed", "x=[[2]]", "--trace")
    assert code == 0 and json.loads(out)["y"]["data"] == [[3.0]]
    assert re.match(r"\d+ % of [\d.]+ .s (was|passed between) ", err)
    assert re.search(r"AddV2 +y  float32\[1,1\]\n", err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("nodes", "expected"), [((100, 4), True), ((), False)])
def test_run_says_what_an_engine_would_compute(capsys, monkeypatch, nodes, expected):
    clusters = [SignatureClusters("serving_default", nodes, {"Foo": 16}, {})]
    monkeypatch.setattr("server.commands.run.engine_name", lambda: "Engine 1.0")
    monkeypatch.setattr("server.commands.run.report_clusters", lambda _: clusters)
    _, _, err = run(capsys, "run", HALF_PLUS_TWO, "--feed", "x=[[2]]", "--trace")
    sentence = "Engine 1.0 can compute 104 of its 120 ops together (clusters of 100, 4)"
    assert (sentence in err) is expected
    _, _, err = run(capsys, "run", HALF_PLUS_TWO, "--fetch", "a/read:0", "--trace")
    assert "Engine" not in err


def test_run_names_the_inputs_that_are_not_fed(capsys):
    code, _, err = run(capsys, "run", HALF_PLUS_TWO)
    assert code == 1
    assert "You must feed a value for placeholder" in err
    assert "No --feed gives these inputs of serving_default: x (float32 [?, 1]  x:0)" in err
