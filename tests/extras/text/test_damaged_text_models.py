"""SavedModels with damaged tokenizer models are refused when they are loaded: nothing is served."""

from __future__ import annotations

import gzip
import pathlib
from collections.abc import Iterator

import pytest

import protos as pb
from runtime.api import InvalidArgumentError, SessionOptions, load_saved_model
from tests.extras.text.test_text_models import MODELS

# model → an op that has its tokenizer model as a constant
IN_CONSTANTS = {
    "bert_normalizer": "FastBertNormalize",
    "fast_bert": "FastBertNormalize",
    "fast_sentencepieces": "TFText>FastSentencepieceTokenize",
    "fast_wordpieces": "FastWordpieceTokenizeWithOffsets",
    "phrases": "PhraseTokenize",
}
LEAST_BYTES = 300  # of a tokenizer model
SENTENCEPIECE = ("albert_inputs", "pairs_of_bytes", "t5_inputs")


def saved(name: str) -> pb.SavedModel:
    packed = (MODELS / name / "saved_model.pb.gz").read_bytes()
    return pb.SavedModel.FromString(gzip.decompress(packed))


def nodes(model: pb.SavedModel) -> Iterator[pb.NodeDef]:
    graph_def = model.meta_graphs[0].graph_def
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def load(model: pb.SavedModel, folder: pathlib.Path) -> None:
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    load_saved_model(SessionOptions(), None, str(folder), {"serve"}).session.close()


@pytest.mark.parametrize("name", IN_CONSTANTS)
@pytest.mark.parametrize("damage", ["cut", "other"])
def test_constants(name: str, damage: str, tmp_path: pathlib.Path) -> None:
    model = saved(name)
    found = 0
    for node in nodes(model):
        tensor = node.attr["value"].tensor if node.op == "Const" else pb.TensorProto()
        if tensor.dtype == pb.DT_UINT8 and len(tensor.tensor_content) >= LEAST_BYTES:
            found += 1
            if damage == "cut":
                tensor.tensor_content = tensor.tensor_content[:200]
                tensor.tensor_shape.dim[0].size = 200
            else:
                size = len(tensor.tensor_content)
                tensor.tensor_content = (b"no model at all " * size)[:size]
    assert found
    with pytest.raises(InvalidArgumentError, match=rf"Node \S+ \({IN_CONSTANTS[name]}\): "):
        load(model, tmp_path)


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_attributes(name: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("sentencepiece", reason="requires: pip install 'runstep[text]'")
    model = saved(name)
    for node in nodes(model):
        if node.op == "SentencepieceOp":
            node.attr["model"].s = b"\xff" + node.attr["model"].s[1:]
    with pytest.raises(InvalidArgumentError, match=r"\(SentencepieceOp\): .*is damaged"):
        load(model, tmp_path)
