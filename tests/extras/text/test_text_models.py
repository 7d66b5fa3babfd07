"""SavedModels that use ops of TF Text answer as TensorFlow does, loaded and over HTTP."""

from __future__ import annotations

import base64
import gzip
import json
import os
import pathlib
from collections.abc import Iterator

import numpy as np
import pytest

import protos as pb
from runtime.api import SavedModelBundle, SessionOptions, load_saved_model
from tests.extras.text.text_cases import as_array
from tests.integration.server_process import ServerProcess

# a folder that tools/export/token_models.py wrote with more texts, or another seed
MODELS = pathlib.Path(
    os.environ.get("RUNSTEP_TEXT_MODELS", pathlib.Path(__file__).parent / "models")
)
NAMES = sorted(path.name for path in MODELS.iterdir() if (path / "saved_model.pb.gz").exists())


# Models of tools/export/sentencepiece_models.py, which need the library of the extra.
SENTENCEPIECE = {"albert_inputs", "t5_inputs", "pairs_of_bytes", "words_and_characters"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the models, as a server finds them."""
    folder = tmp_path_factory.mktemp("models")
    for name in NAMES:
        version = folder / name / "1"
        version.mkdir(parents=True)
        model = gzip.decompress((MODELS / name / "saved_model.pb.gz").read_bytes())
        (version / "saved_model.pb").write_bytes(model)
    return folder


def recorded(name: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    answers = json.loads(gzip.decompress((MODELS / name / "answers.json.gz").read_bytes()))
    outputs = {key: as_array(each) for key, each in answers["outputs"].items()}
    return as_array(answers["words"]), outputs


def load(folder: pathlib.Path) -> SavedModelBundle:
    options = SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1))
    return load_saved_model(options, None, str(folder), {"serve"})


@pytest.mark.parametrize("name", NAMES)
def test_a_model_answers_as_tensorflow(name: str, unpacked: pathlib.Path) -> None:
    if name in SENTENCEPIECE:
        pytest.importorskip("sentencepiece", reason="requires: pip install 'runstep[text]'")
    words, outputs = recorded(name)
    bundle = load(unpacked / name / "1")
    signature = bundle.signatures["serving_default"]
    keys = sorted(outputs)
    assert sorted(signature.outputs) == keys
    fetches = [signature.outputs[key].name for key in keys]
    found = bundle.session.run({signature.inputs["words"].name: words}, fetches)
    for key, got in zip(keys, found, strict=True):
        assert got.dtype == outputs[key].dtype
        assert got.tolist() == outputs[key].tolist(), key
    bundle.session.close()


@pytest.fixture(scope="module")
def server(unpacked: pathlib.Path) -> Iterator[ServerProcess]:
    model = unpacked / "bert_normalizer"
    process = ServerProcess("--host=127.0.0.1", "--model_name=m", f"--model_base_path={model}")
    try:
        while process.client.get("/readyz").status_code != 200:
            assert process.process.poll() is None
        yield process
    finally:
        process.end()


@pytest.mark.parametrize("priority", ["normal", "low"])
def test_texts_over_rest(server: ServerProcess, priority: str) -> None:
    words, outputs = recorded("bert_normalizer")
    instances = [{"b64": base64.b64encode(each).decode()} for each in words.tolist()]
    answer = server.client.post(
        "/v1/models/m:predict",
        json={"inputs": {"words": instances}},
        headers={"X-Priority": priority},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["outputs"]["offsets"] == outputs["offsets"].tolist()
