import importlib.util
import pathlib
import shutil

import pytest

import protos as pb
from runtime.graph.graph import RELEASE
from server.main import main
from tests.saved_model_corpus import fixture_names

MODELS = pathlib.Path(__file__).parents[3] / "fixtures" / "saved_models"
HALF_PLUS_TWO = str(MODELS / "half_plus_two")


def run(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_show_tells_signatures_ops_and_the_verdict(capsys):
    code, out, _ = run(capsys, "show", HALF_PLUS_TWO)
    assert code == 0
    for line in ("tags: serve", "signature serving_default (tensorflow/serving/predict)",
                 "    x: float32 [?, 1]  x:0", "    y: float32 [?, 1]  y:0",
                 "This model can be served."):  # fmt: skip
        assert line in out.splitlines()


def test_show_tells_which_nodes_an_engine_can_compute(capsys):
    code, out, _ = run(capsys, "show", HALF_PLUS_TWO)
    assert code == 0
    lines = out.splitlines()
    assert any(line.startswith("clusters (") for line in lines)
    assert "  serving_default: nodes in clusters 2; outside none" in lines


def test_show_tells_what_openvino_would_be(capsys, monkeypatch):
    monkeypatch.setattr("server.commands.show.describe_openvino", lambda: "OpenVINO 1.0 in float32")
    _, out, _ = run(capsys, "show", HALF_PLUS_TWO)
    assert "  engine: openvino would be OpenVINO 1.0 in float32" in out.splitlines()


def test_show_does_not_say_that_tensorflow_wrote_what_was_written_here(capsys, tmp_path):
    code, _, _ = run(capsys, "export", HALF_PLUS_TWO, tmp_path / "out")
    assert code == 0
    _, out, _ = run(capsys, "show", tmp_path / "out")
    lines = out.splitlines()
    assert f"TensorFlow version: {RELEASE}" in lines
    assert not any("written by" in line for line in lines)


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


def test_show_lists_op_packages_and_what_they_need(capsys, tmp_path):
    nodes = [("c", "SimpleMLInferenceOpWithHandle"), ("d", "XlaCallModule"), ("e", "NoSuchOp")]
    folder = saved_model(tmp_path / "m", *nodes, outputs=["d"])
    code, out, _ = run(capsys, "show", folder)
    assert code == 1
    for package, op, module in (
        ("forests", "SimpleMLInferenceOpWithHandle", "ydf"), ("jax", "XlaCallModule", "jaxlib")
    ):  # fmt: skip
        assert f"\n  {package} (runstep " in out
        if importlib.util.find_spec(module) is None:
            assert f"{op}: Op {op} needs the package {package}, which requires `pip install" in out
        else:
            assert f"    of this model: {op}\n" in out


def test_show_says_that_there_are_no_signatures(capsys, tmp_path):
    folder = saved_model(tmp_path / "m", ("n", "NoOp"), outputs=[])
    code, out, _ = run(capsys, "show", folder)
    assert code == 0
    assert "signatures: none, so that only sessions can run it, by the names of tensors\n" in out


def test_show_says_that_there_is_no_default_signature(capsys, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(MODELS / "half_plus_two", folder)
    path = folder / "saved_model.pb"
    model = pb.SavedModel.FromString(path.read_bytes())
    del model.meta_graphs[0].signature_def["serving_default"]
    path.write_bytes(model.SerializeToString())
    code, out, _ = run(capsys, "show", folder)
    assert code == 0
    assert "signatures: no serving_default, so that every prediction must name one\n" in out


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        ("variables.index", "variables.index is missing"),
        ("variables.data-00000-of-00001", "1 of the 1 files "),
    ],
)
@pytest.mark.parametrize("stray", [None, "variables.data-00000-of-old"])
def test_show_says_that_variables_are_missing(capsys, tmp_path, lost, text, stray):
    folder = tmp_path / "m"
    shutil.copytree(MODELS / "half_plus_two", folder)
    if stray is not None:
        (folder / "variables" / stray).touch()
    (folder / "variables" / lost).unlink()
    code, out, _ = run(capsys, "show", folder)
    assert code == 1
    assert text in next(line for line in out.splitlines() if line.startswith("variables: "))
    assert "This model cannot be served: its variables are incomplete." in out
