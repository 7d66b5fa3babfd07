"""SentencePiece models that are damaged, and arguments that do not fit, are refused."""

from __future__ import annotations

import gzip
import pathlib
import random
import types

import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, OpError, OutOfRangeError
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import ResourceHandle

sentencepieces = pytest.importorskip(
    "runtime.op_packages.text.sentencepieces", reason="requires: pip install 'runstep[text]'"
)
SAVED = pathlib.Path(__file__).parent / "models" / "words_and_characters" / "saved_model.pb.gz"
TEXTS = np.array([b"hello world", b"\xff \xf0\x9f", b""], object)


def models() -> list[bytes]:
    """The models in the nodes of a SavedModel."""
    saved = pb.SavedModel.FromString(gzip.decompress(SAVED.read_bytes()))
    nodes = [*saved.meta_graphs[0].graph_def.node]
    for function in saved.meta_graphs[0].graph_def.library.function:
        nodes += function.node_def
    return [node.attr["model"].s for node in nodes if node.op == "SentencepieceOp"]


MODEL = models()[0]


def tokens(
    model: bytes, nbest_size: object = 0, alpha: object = 1.0, bos: bool = False
) -> tuple[np.ndarray, ...]:
    resource = sentencepieces.SentencePieceModel(model)
    handle = ResourceHandle("", "m", resource.type_name, resource=resource)
    found: tuple[np.ndarray, ...] = sentencepieces.tokenize_with_offsets(
        types.SimpleNamespace(), handle, TEXTS, np.int32(nbest_size), np.float32(alpha),
        np.bool_(bos), np.bool_(False), np.bool_(False),
        out_type=DataType.INT32, Tsplits=DataType.INT64, return_nbest=False,
    )  # fmt: skip
    return found


def test_samples_have_the_shape_of_their_texts() -> None:
    _, splits, starts, ends = tokens(MODEL, nbest_size=[1, 4, -1], alpha=[0.1, 0.2, 0.3])
    assert len(splits) == 4
    assert (starts <= ends).all()


@pytest.mark.parametrize("nbest_size", [[1, 2], [[1, 2, 3]]])
def test_sizes_that_do_not_fit_the_texts(nbest_size: object) -> None:
    with pytest.raises(InvalidArgumentError, match="nbest_size must be a scalar or have one"):
        tokens(MODEL, nbest_size=nbest_size)


def test_an_empty_model_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Model argument must be specified"):
        tokens(b"")


def test_numbers_that_a_model_does_not_have() -> None:
    resource = sentencepieces.SentencePieceModel(MODEL)
    handle = ResourceHandle("", "m", resource.type_name, resource=resource)
    context, no = types.SimpleNamespace(), np.bool_(False)
    for number in (-1, 10**6):
        given = np.array([number], np.int32)
        with pytest.raises(OutOfRangeError, match=f"Invalid id: {number}"):
            sentencepieces.detokenize(context, handle, given, np.array([0, 1]), no, no, no)
        with pytest.raises(InvalidArgumentError, match=f"id {number} is not in"):
            sentencepieces.id_to_string(context, handle, given)


def test_damaged_models_are_errors_or_harmless() -> None:
    source = random.Random(9)
    outcomes = []
    for _ in range(200):
        model = bytearray(MODEL)
        for _ in range(source.randint(1, 5)):
            model[source.randrange(len(model))] = source.randrange(256)
        try:
            tokens(bytes(model))
            outcomes.append("")
        except OpError as error:
            outcomes.append(str(error))
    assert any("The SentencePiece model is damaged" in each for each in outcomes)
