"""The commands that need no server, called as the shell calls them."""

import io
import json
import pathlib
import re

import numpy as np
import pytest

import protos as pb
from server.commands.progress import Progress, bar
from server.commands.serve import flag_settings
from server.main import _parser, main
from tests.saved_model_corpus import fixture_names

MODELS = pathlib.Path(__file__).parents[3] / "fixtures" / "saved_models"
HALF_PLUS_TWO = str(MODELS / "half_plus_two")


def run(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_version(capsys):
    code, out, _ = run(capsys, "version")
    assert code == 0 and re.fullmatch(r"runstep \S+ \(Python 3\.\d+\.\d+\)\n", out)


def test_show_tells_signatures_ops_and_the_verdict(capsys):
    code, out, _ = run(capsys, "show", HALF_PLUS_TWO)
    assert code == 0
    for line in ("tags: serve", "signature serving_default (tensorflow/serving/predict)",
                 "    x: float32 [?, 1]  x:0", "    y: float32 [?, 1]  y:0",
                 "This model can be served."):  # fmt: skip
        assert line in out.splitlines()


@pytest.mark.parametrize("name", fixture_names())
def test_every_model_of_the_corpus_can_be_shown(capsys, name):
    code, out, _ = run(capsys, "show", MODELS / name)
    assert "signature serving_default" in out or name.startswith("counter")
    assert (code == 0) is ("This model can be served." in out)


def test_show_names_the_three_tensors_of_a_sparse_input(capsys):
    code, out, _ = run(capsys, "show", MODELS / "sparse_inputs")
    assert code == 0
    assert "    ids: coo_sparse  ids/values:0, ids/indices:0, ids/shape:0" in out.splitlines()


def saved_model(folder, *nodes, outputs):
    graph = pb.MetaGraphDef()
    graph.meta_info_def.tags.append("serve")
    for name, op in nodes:
        graph.graph_def.node.add(name=name, op=op)
    for name in outputs:
        info = pb.TensorInfo(name=f"{name}:0", dtype=pb.DT_FLOAT)
        graph.signature_def["serving_default"].outputs[name].CopyFrom(info)
    folder.mkdir(parents=True)
    model = pb.SavedModel(saved_model_schema_version=1, meta_graphs=[graph])
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    return folder


def test_show_names_what_cannot_be_served(capsys, tmp_path):
    nodes = [(f"tpu{index}", "TPUReplicatedInput") for index in range(4)]
    folder = saved_model(tmp_path / "m" / "1", *nodes, outputs=["tpu0"])
    code, out, _ = run(capsys, "show", folder.parent)
    assert code == 1
    assert "  TPUReplicatedInput  tpu0, tpu1, tpu2 and 1 more" in out
    assert "This model cannot be served:\n  " in out and "reaches TPUReplicatedInput" in out


def test_show_names_unknown_ops(capsys, tmp_path):
    folder = saved_model(tmp_path / "m", ("n", "NoSuchOp"), outputs=[])
    code, out, _ = run(capsys, "show", folder)
    assert code == 1
    assert "unknown ops (the graph cannot be created):\n  NoSuchOp  n\n" in out


def test_show_names_the_package_of_missing_ops(capsys, tmp_path):
    nodes = [("a", "SentencepieceOp"), ("b", "TFText>RoundRobinTrim"),
             ("c", "SimpleMLInferenceOpWithHandle"), ("d", "XlaCallModule"),
             ("e", "NoSuchOp")]  # fmt: skip
    folder = saved_model(tmp_path / "m", *nodes, outputs=["d"])
    code, out, _ = run(capsys, "show", folder)
    assert code == 1
    lines = [line for line in out.splitlines() if "Runstep does not" in line]
    assert lines == [
        "SentencepieceOp, TFText>RoundRobinTrim: an op of TensorFlow Text, which TensorFlow "
        "Serving's binary links and Runstep does not have.",
        "SimpleMLInferenceOpWithHandle: an op of TensorFlow Decision Forests, which TensorFlow "
        "Serving's binary links and Runstep does not have.",
        "XlaCallModule: a model exported from JAX: Runstep does not run StableHLO modules.",
    ]


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
        ((HALF_PLUS_TWO, "--feed", "x=one"), "INVALID_ARGUMENT: The body is not valid JSON"),
        ((HALF_PLUS_TWO, "--feed", "x=[true]"), "Tensor x: Expected a number at element 0"),
        ((HALF_PLUS_TWO, "--feed", "x=@no.json"), "NOT_FOUND: Cannot read no.json"),
        ((HALF_PLUS_TWO, "--feed", "x=no.npy"), "NOT_FOUND: Cannot read no.npy"),
        ((HALF_PLUS_TWO, "--signature", "s"), "NOT_FOUND: There is no signature 's'; there are"),
        ((HALF_PLUS_TWO, "--tags", "train"), "NOT_FOUND: Could not find meta graph def"),
    ],
)
def test_run_says_what_is_wrong(capsys, arguments, message):
    code, _, err = run(capsys, "run", *arguments)
    assert code == 1
    assert err.startswith("runstep: ") and message in err


@pytest.mark.parametrize("arguments", [[], ["frob"], ["show"], ["serve", "--port=x"]])
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: runstep" in capsys.readouterr().err


def test_flags_of_tensorflow_serving_become_settings():
    options = _parser().parse_args(
        ["serve", "--port=1", "--rest_api_port=2", "--rest_api_timeout_in_ms=3",
         "--model_name=m", "--model_base_path=/m", "--file_system_poll_wait_seconds=0"]
    )  # fmt: skip
    assert flag_settings(options) == {
        "grpc": {"port": 1},
        "rest": {"port": 2, "timeout_ms": 3},
        "models": [{"name": "m", "base_path": "/m"}],
        "model_poll_seconds": 0,
    }


def test_flags_that_are_not_given_leave_the_settings_alone():
    assert flag_settings(_parser().parse_args(["serve"])) == {}


def test_the_bar_goes_to_and_fro():
    frames = [bar(frame) for frame in range(46)]
    assert frames[0] == "#" + "." * 23 and frames[23] == "." * 23 + "#"
    assert frames[45] == frames[1] and bar(46) == frames[0]


def test_nothing_is_drawn_where_there_is_no_terminal():
    stream = io.StringIO()
    with Progress("Loading", stream):
        pass
    assert stream.getvalue() == ""


def test_export_freezes(capsys, tmp_path):
    out = tmp_path / "frozen"
    code, _, _ = run(capsys, "export", HALF_PLUS_TWO, out, "--freeze")
    assert code == 0
    code, printed, _ = run(capsys, "run", out, "--feed", "x=[2]")
    assert (code, json.loads(printed)["y"]["data"]) == (0, [3.0])
    code, _, error = run(capsys, "export", HALF_PLUS_TWO, out)
    assert code == 1
    assert "ALREADY_EXISTS: Export directory already exists, and isn't empty." in error


def test_run_writes_a_timeline(capsys, tmp_path):
    trace = tmp_path / "trace.json"
    code, _, _ = run(capsys, "run", HALF_PLUS_TWO, "--feed", "x=[2]", "--trace", trace)
    events = json.loads(trace.read_text())["traceEvents"]
    spans = {event["args"]["name"]: event for event in events if event["ph"] == "X"}
    assert code == 0
    assert spans["y"]["args"]["op"] == "AddV2"
    assert spans["y"]["args"]["output:0"] == "float32[1]"
