"""Forests exported by YDF give TensorFlow's predictions, and damaged ones are refused."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    InvalidArgumentError,
    OpError,
    PermissionDeniedError,
    SavedModelBundle,
    SessionOptions,
    load_saved_model,
)
from runtime.op_packages.forests.forest import Forest
from tests.integration.server_process import ServerProcess

MODELS = pathlib.Path(__file__).parent / "models"
NAMES = sorted(path.name for path in MODELS.iterdir())
CLASS_NAMES = "dense_col_representation"


def load(folder: pathlib.Path) -> SavedModelBundle:
    options = SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1))
    return load_saved_model(options, None, str(folder), {"serve"})


def recorded(name: str, kind: str) -> dict[str, np.ndarray]:
    """Return the inputs ("in") or outputs ("out") of the recorded call."""
    with np.load(MODELS / name / "answers.npz") as arrays:
        return {
            key.removeprefix(f"{kind}."): as_tensor(arrays[key])
            for key in arrays.files
            if key.startswith(f"{kind}.")
        }


def as_tensor(array: np.ndarray) -> np.ndarray:
    return array.astype(object) if array.dtype.kind == "S" else array


def call(bundle: SavedModelBundle, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    signature = bundle.signatures["serving_default"]
    feeds = {signature.inputs[key].name: value for key, value in inputs.items()}
    names = sorted(signature.outputs)
    values = bundle.session.run(feeds, [signature.outputs[name].name for name in names])
    return dict(zip(names, values, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_tensorflows(name: str) -> None:
    bundle = load(MODELS / name / "1")
    outputs = recorded(name, "out")
    got = call(bundle, recorded(name, "in"))
    assert got.keys() == outputs.keys()
    for key, want in outputs.items():
        if want.dtype == object:
            assert got[key].tolist() == want.tolist()
        else:
            assert got[key].dtype == want.dtype
            np.testing.assert_allclose(got[key], want, rtol=1e-5, atol=1e-6)
    bundle.session.close()


@pytest.mark.parametrize("name", NAMES)
def test_one_row_gives_what_it_gives_among_others(name: str) -> None:
    if name == "sets":
        pytest.skip("a ragged input has two tensors, which are cut elsewhere")
    bundle = load(MODELS / name / "1")
    outputs = recorded(name, "out")
    got = call(bundle, {key: value[7:8] for key, value in recorded(name, "in").items()})
    for key, want in outputs.items():
        if want.dtype != object:
            np.testing.assert_allclose(got[key], want[7:8], rtol=1e-5, atol=1e-6)
    bundle.session.close()


@pytest.fixture
def binary(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of a model that a test may damage."""
    return pathlib.Path(shutil.copytree(MODELS / "binary" / "1", tmp_path / "model"))


def model_file(model: pathlib.Path, name: str) -> pathlib.Path:
    (found,) = (model / "assets").glob(f"????????_{name}*")
    return found


@pytest.mark.parametrize("name", ["header.pb", "data_spec.pb", "nodes"])
def test_a_model_without_one_of_its_files(binary: pathlib.Path, name: str) -> None:
    model_file(binary, name).unlink()
    with pytest.raises(InvalidArgumentError, match=r"forest"):
        load(binary)


@pytest.mark.parametrize("name", ["header.pb", "data_spec.pb", "nodes"])
def test_a_damaged_file_is_refused_or_changes_no_more_than_numbers(
    binary: pathlib.Path, name: str
) -> None:
    path = model_file(binary, name)
    whole = path.read_bytes()
    inputs = recorded("binary", "in")
    random = np.random.default_rng(3)
    refused = 0
    for _ in range(10):
        damaged = bytearray(whole)
        for at in random.integers(0, len(whole), 3):
            damaged[at] = random.integers(0, 256)
        path.write_bytes(bytes(damaged[: random.integers(1, len(whole))]))
        try:
            bundle = load(binary)
        except OpError:
            refused += 1
            continue
        try:
            call(bundle, inputs)
        except OpError:
            refused += 1
        finally:
            bundle.session.close()
    assert refused > 4


DEEP = """
import sys, threading, numpy as np, ydf
from ydf.model.tree import condition, node, tree, value
numbers = {"x": np.arange(9, dtype=np.float32), "label": np.arange(9, dtype=np.float32)}
learner = ydf.RandomForestLearner(label="label", task=ydf.Task.REGRESSION, num_trees=1, max_depth=2)
model = learner.train(numbers)
leaf = node.Leaf(value=value.RegressionValue(num_examples=1, value=1.0))
root = leaf
for _ in range(100_000):
    higher = condition.NumericalHigherThanCondition(
        missing=False, score=1.0, attribute=1, threshold=0.5
    )
    root = node.NonLeaf(condition=higher, neg_child=leaf, pos_child=root, value=leaf.value)
def save():
    model.set_tree(0, tree.Tree(root=root))
    options = ydf.ModelIOOptions(file_prefix=sys.argv[2])
    model.save(sys.argv[1], advanced_options=options)
sys.setrecursionlimit(10**7)
threading.stack_size(1 << 29)
thread = threading.Thread(target=save)
thread.start()
thread.join()
"""


def test_a_tree_of_great_depth_is_refused(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEEP, str(tmp_path), "deep_"], check=False, capture_output=True
    )
    assert (tmp_path / "deep_done").exists(), done.stderr.decode()
    with pytest.raises(InvalidArgumentError, match="its trees are too deep or damaged"):
        Forest(str(tmp_path), "deep_")


def test_a_link_out_of_the_model_is_not_followed(
    binary: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    path = model_file(binary, "nodes")
    path.rename(tmp_path / "nodes")
    path.symlink_to(tmp_path / "nodes")
    with pytest.raises(PermissionDeniedError, match="may not read"):
        load(binary)


def test_features_that_do_not_fit() -> None:
    bundle = load(MODELS / "binary" / "1")
    inputs = recorded("binary", "in")
    inputs["x"] = inputs["x"][:3]
    with pytest.raises(InvalidArgumentError):
        call(bundle, inputs)
    bundle.session.close()


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    process = ServerProcess(
        "--host=127.0.0.1", "--model_name=m", f"--model_base_path={MODELS / 'regression'}"
    )
    try:
        while process.client.get("/readyz").status_code != 200:
            assert process.process.poll() is None
        yield process
    finally:
        process.end()


@pytest.mark.parametrize("priority", ["normal", "low"])
def test_a_forest_over_rest(server: ServerProcess, priority: str) -> None:
    rows = {key: value[:5].tolist() for key, value in recorded("regression", "in").items()}
    answer = server.client.post(
        "/v1/models/m:predict",
        content=json.dumps({"inputs": rows}),  # NaN, a missing value, is a bare token
        headers={"X-Priority": priority},
    )
    assert answer.status_code == 200, answer.text
    (want,) = recorded("regression", "out").values()
    got = np.array(answer.json()["outputs"], np.float32).reshape(want[:5].shape)
    np.testing.assert_allclose(got, want[:5], rtol=1e-5)


def test_sessions_on_a_model_share_the_forest(server: ServerProcess) -> None:
    opened = server.client.post("/v1/sessions", json={"model": "m"})
    assert opened.status_code == 201, opened.text
    name = opened.json()["session"]
    (listed,) = server.client.get("/v1/sessions").json()["sessions"]
    assert listed["shared_weights"] is True
    assert listed["bytes_held"] < 10_000
    signature = load(MODELS / "regression" / "1").signatures["serving_default"]
    feeds = {
        signature.inputs[key].name: value[1:4].tolist()
        for key, value in recorded("regression", "in").items()
        if key != "gappy"
    }
    feeds[signature.inputs["gappy"].name] = [0.5, "NaN", 1.0]
    output = signature.outputs["output"].name
    answer = server.client.post(
        f"/v1/sessions/{name}:run", json={"feeds": feeds, "fetches": [output]}
    )
    assert answer.status_code == 200, answer.text
    assert np.isfinite(answer.json()["outputs"][output]["data"]).all()
    server.client.delete(f"/v1/sessions/{name}")
