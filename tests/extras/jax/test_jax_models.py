"""Programs that jax2tf exported give TensorFlow's and JAX's answers; damaged ones are refused."""

from __future__ import annotations

import pathlib
import random
import shutil
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    InvalidArgumentError,
    NotFoundError,
    SavedModelBundle,
    SessionOptions,
    load_saved_model,
)
from runtime.op_packages.jax import xla_call_module
from tests.integration.server_process import ServerProcess

MODELS = pathlib.Path(__file__).parent / "models"
NAMES = sorted(path.name for path in MODELS.iterdir())
FIXED = "../fixed_models/calls_tensorflow"  # of one size


def load(folder: pathlib.Path) -> SavedModelBundle:
    options = SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1))
    return load_saved_model(options, None, str(folder), {"serve"})


def recorded(name: str, kind: str) -> dict[str, np.ndarray]:
    """Return the inputs ("in"), TensorFlow's outputs ("out") or JAX's ("jax")."""
    with np.load(MODELS / name / "answers.npz") as arrays:
        keys = [key for key in arrays.files if key.startswith(f"{kind}.")]
        return {key.removeprefix(f"{kind}."): arrays[key] for key in keys}


def call(bundle: SavedModelBundle, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    signature = bundle.signatures["serving_default"]
    feeds = {signature.inputs[key].name: value for key, value in inputs.items()}
    names = sorted(signature.outputs)
    values = bundle.session.run(feeds, [signature.outputs[name].name for name in names])
    return dict(zip(names, values, strict=True))


@pytest.fixture
def perceptron() -> Iterator[SavedModelBundle]:
    bundle = load(MODELS / "perceptron" / "1")
    yield bundle
    bundle.session.close()


@pytest.mark.parametrize("name", [*NAMES, FIXED])
def test_answers_are_those_of_tensorflow_and_jax(name: str) -> None:
    bundle = load(MODELS / name / "1")
    got = call(bundle, recorded(name, "in"))
    assert got
    for expected in (recorded(name, "out"), recorded(name, "jax")):
        assert got.keys() == expected.keys()
        for key, want in expected.items():
            if got[key].dtype.kind != "V":
                assert got[key].dtype == want.dtype
            np.testing.assert_allclose(
                np.asarray(got[key], want.dtype), want, rtol=1e-5, atol=1e-6 * np.abs(want).max()
            )
    bundle.session.close()


@pytest.mark.parametrize("name", NAMES)
def test_each_number_of_rows_is_compiled_and_gives_the_same(name: str) -> None:
    bundle = load(MODELS / name / "1")
    inputs, outputs = recorded(name, "in"), recorded(name, "out")
    for rows in (1, 3, 1):
        got = call(bundle, {key: value[:rows] for key, value in inputs.items()})
        for key, want in outputs.items():
            if len(want) == len(next(iter(inputs.values()))):  # not a sum over the rows
                wide = np.asarray(got[key], want.dtype)
                np.testing.assert_allclose(wide, want[:rows], rtol=1e-4, atol=1e-5)
    bundle.session.close()


def test_a_program_of_one_size_refuses_others() -> None:
    bundle = load(MODELS / FIXED / "1")
    with pytest.raises(InvalidArgumentError, match="argument shapes"):
        call(bundle, {"x": recorded(FIXED, "in")["x"][:2]})
    bundle.session.close()


def test_two_loads_of_a_model_share_its_program(perceptron: SavedModelBundle) -> None:
    inputs = recorded("perceptron", "in")
    call(perceptron, inputs)
    second = load(MODELS / "perceptron" / "1")
    call(second, inputs)
    programs = [each for each in xla_call_module._programs.values() if each._executables]
    assert len(programs) == 1
    assert len(programs[0]._executables) == 1
    second.session.close()


def test_few_executables_are_kept(
    perceptron: SavedModelBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xla_call_module, "MOST_EXECUTABLES", 2)
    x = recorded("perceptron", "in")["x"]
    for rows in (1, 2, 3, 4):
        call(perceptron, {"x": x[:rows]})
    counts = [len(each._executables) for each in xla_call_module._programs.values()]
    assert max(counts) == 2


def test_many_threads_call_a_program(perceptron: SavedModelBundle) -> None:
    x, want = recorded("perceptron", "in")["x"], recorded("perceptron", "out")["classes"]
    wrong: list[int] = []

    def work(rows: int) -> None:
        for _ in range(20):
            got = call(perceptron, {"x": x[:rows]})["classes"]
            if not np.allclose(got, want[:rows], 1e-5):
                wrong.append(rows)

    threads = [threading.Thread(target=work, args=(1 + number % 3,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_sizes_that_do_not_fit_are_found_when_shapes_are_refined() -> None:
    bundle = load(MODELS / "attention_over_any_length" / "1")
    with pytest.raises(InvalidArgumentError, match=r"refinement failed: number of output elements"):
        call(bundle, {"x": np.ones((2, 3, 6), np.float32)})
    assert call(bundle, {"x": np.ones((2, 4, 6), np.float32)})["mean"].shape == (2, 6)
    bundle.session.close()


def test_an_empty_batch_is_refused_as_the_export_requires(perceptron: SavedModelBundle) -> None:
    with pytest.raises(InvalidArgumentError, match="Expected value >= 1 for dimension variable"):
        call(perceptron, {"x": np.ones((0, 20), np.float32)})


def test_inputs_that_do_not_fit_are_named(perceptron: SavedModelBundle) -> None:
    with pytest.raises(InvalidArgumentError):
        call(perceptron, {"x": np.ones((2, 21), np.float32)})


def changed(tmp_path: pathlib.Path, change: object) -> pathlib.Path:
    """Return a copy of a model whose XlaCallModule nodes `change` has changed."""
    folder = tmp_path / "model"
    shutil.copytree(MODELS / "perceptron" / "1", folder)
    path = folder / "saved_model.pb"
    model = pb.SavedModel.FromString(path.read_bytes())
    for function in model.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            if node.op == "XlaCallModule":
                change(node)  # type: ignore[operator]
    path.write_bytes(model.SerializeToString())
    return folder


def garbage(node: pb.NodeDef) -> None:
    node.attr["module"].s = b"garbage"


def cut(node: pb.NodeDef) -> None:
    node.attr["module"].s = node.attr["module"].s[:500]


def newer(node: pb.NodeDef) -> None:
    node.attr["version"].i = 11


def older(node: pb.NodeDef) -> None:
    node.attr["version"].i = 3


def of_no_platform(node: pb.NodeDef) -> None:
    del node.attr["platforms"].list.s[:]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (garbage, "Cannot deserialize computation"),
        (cut, "Cannot deserialize computation"),
        (newer, "version 11 is not supported by this build. Must be <= 10"),
        (older, "version 3 is not supported anymore"),
        (of_no_platform, "must have non-empty platforms"),
    ],
)
def test_a_program_that_cannot_run_keeps_the_model_from_loading(
    change: object, words: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(InvalidArgumentError, match=words) as caught:
        load(changed(tmp_path, change))
    assert "XlaCallModule" in str(caught.value)


def test_a_program_for_other_platforms_is_refused(tmp_path: pathlib.Path) -> None:
    def elsewhere(node: pb.NodeDef) -> None:
        node.attr["platforms"].list.s[:] = [b"CUDA"]

    with pytest.raises(NotFoundError, match=r"CPU is not among the platforms .*\[CUDA\]"):
        load(changed(tmp_path, elsewhere))


def test_damage_that_ends_the_library_when_it_refines_shapes_is_found_at_load() -> None:
    model = pb.SavedModel.FromString((MODELS / "types" / "1" / "saved_model.pb").read_bytes())
    (node,) = (
        node
        for function in model.meta_graphs[0].graph_def.library.function
        for node in function.node_def
        if node.op == "XlaCallModule"
    )
    code = bytearray(node.attr["module"].s)
    code[851] = 62  # with jaxlib 0.10.2: read, valid, and a segmentation fault in the refinement
    node.attr["module"].s = bytes(code)
    with pytest.raises(InvalidArgumentError, match="Cannot deserialize computation"):
        xla_call_module.check_node(node)


def test_random_damage_is_an_error_or_harmless(tmp_path: pathlib.Path) -> None:
    generator = random.Random(5)
    outcomes = []
    for number in range(6):

        def damage(node: pb.NodeDef) -> None:
            code = bytearray(node.attr["module"].s)
            for _ in range(3):
                code[generator.randrange(len(code))] = generator.randrange(256)
            node.attr["module"].s = bytes(code)

        folder = changed(tmp_path / str(number), damage)
        try:
            load(folder).session.close()
            outcomes.append("")
        except InvalidArgumentError as error:
            outcomes.append(str(error))
    assert any("Cannot deserialize computation" in each for each in outcomes)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    process = ServerProcess(
        "--host=127.0.0.1", "--model_name=m", f"--model_base_path={MODELS / 'recurrent'}"
    )
    try:
        while process.client.get("/readyz").status_code != 200:
            assert process.process.poll() is None
        yield process
    finally:
        process.end()


@pytest.mark.parametrize("priority", ["normal", "low"])
def test_a_program_over_rest(server: ServerProcess, priority: str) -> None:
    inputs, outputs = recorded("recurrent", "in"), recorded("recurrent", "out")
    answer = server.client.post(
        "/v1/models/m:predict",
        json={"inputs": {key: value.tolist() for key, value in inputs.items()}},
        headers={"x-priority": priority},
    )
    assert answer.status_code == 200, answer.text
    got = answer.json()["outputs"]
    np.testing.assert_allclose(got["last"], outputs["last"], 1e-5, 1e-6)
    assert got["places"] == outputs["places"].tolist()
