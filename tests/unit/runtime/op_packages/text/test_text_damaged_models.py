"""Damaged models of TF Text: an answer or InvalidArgument, soon, and nothing else."""

from __future__ import annotations

import gzip
import json
import random
import struct
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from runtime.foundation.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    OutOfRangeError,
)
from runtime.framework.op_packages import kernels_of_package
from runtime.framework.string_tensor import string_tensor
from runtime.op_packages.text.double_array import DoubleArray
from runtime.op_packages.text.flatbuffer import FlatBuffer
from tests.extras.text.text_cases import RECORDED, as_array, call

TEXTS = string_tensor(
    [
        b"hello, world! it's (really) 5.00?",
        "Ünïcödé ﬁn 他来到了".encode(),
        b"\xff\xe4\xb8",
        b"a" * 300,
    ]
)
NUMBERS = np.arange(40, dtype=np.int32)
ROWS = np.array([0, 3, 3, 40])
# What a model that can be read may say: that it has no vocabulary, not that word, or no way on.
SAID = (FailedPreconditionError, OutOfRangeError, InternalError)
SECONDS = 2  # a call takes milliseconds


def models(path: str) -> dict[str, np.ndarray]:
    recorded = json.loads(gzip.decompress(RECORDED.with_name(path).read_bytes()))
    return {name: as_array(each) for name, each in recorded["models"].items()}


MODELS = {
    name: model
    for recorded in ("sentencepiece_cases", "text_cases", "wordpiece_cases")
    for name, model in models(f"{recorded}.json.gz").items()
}
CALLS: dict[str, tuple[str, Callable[[np.ndarray], list[np.ndarray]], dict[str, bool]]] = {
    "tokens": ("FastWordpieceTokenizeWithOffsets", lambda model: [TEXTS, model], {}),
    "words": ("TFText>FastWordpieceDetokenize", lambda model: [NUMBERS, ROWS, model], {}),
    "phrases": ("PhraseTokenize", lambda model: [TEXTS, model], {}),
    "texts": ("TFText>PhraseDetokenize", lambda model: [NUMBERS, ROWS, model], {}),
    "pieces": (
        "TFText>FastSentencepieceTokenize",
        lambda model: [model, TEXTS, NUMBERS[0], np.float32(0), *[np.bool_(True)] * 3],
        {},
    ),
    "pieces' texts": (
        "TFText>FastSentencepieceDetokenize",
        lambda model: [model, NUMBERS, ROWS],
        {},
    ),
    "forms": ("FastBertNormalize", lambda model: [TEXTS, model], {"get_offsets": True}),
}
OF_KIND = {
    "tokens": "wordpiece", "words": "wordpiece", "forms": "lower", "pieces": "encode",
    "pieces' texts": "decode",
}  # fmt: skip
CASES = [
    (kind, name)
    for name in MODELS
    for kind in CALLS
    if name.split("_")[0] == OF_KIND.get(kind, "phrase")
]


def damaged(model: bytes, source: random.Random, count: int) -> Iterator[bytes]:
    """Yield copies with bytes or numbers changed, most of them where the tables are, or cut off."""
    for _ in range(count):
        copy = bytearray(model)
        for _ in range(source.randint(1, 6)):
            limit = source.choice((64, 256, len(copy)))
            place = source.randrange(min(limit, len(copy)))
            if source.random() < 0.5:
                copy[place] = source.randrange(256)
            else:
                number = source.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(copy)))
                copy[place : place + 4] = struct.pack("<I", number)
        if source.random() < 0.3:
            del copy[source.randrange(len(copy)) :]
        yield bytes(copy)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_ops_answer_or_refuse(kind: str, name: str) -> None:
    op, inputs, attrs = CALLS[kind]
    memory = kernels_of_package(op)[0][0].memory
    assert callable(memory)
    refused = 0
    for model in damaged(MODELS[name].tobytes(), random.Random(11), 400):
        begun = time.monotonic()
        given = inputs(np.frombuffer(model, np.uint8))
        try:
            assert memory(*given, **attrs) > 0
            call(op, given, attrs)
        except InvalidArgumentError:
            refused += 1
        except SAID as error:
            assert not isinstance(error, InvalidArgumentError)
        assert time.monotonic() - begun < SECONDS
    assert refused > 10


def walk(data: bytes) -> int:
    """Read whatever a buffer may have; return how many things could be read."""
    found = 0
    root = FlatBuffer(np.frombuffer(data, np.uint8), "model").root()
    for field in range(16):
        for read in (
            lambda field: root.number(field, "i"),
            lambda field: root.vector(field, "<u4", 2),
            lambda field: root.string(field, "name"),
            lambda field: root.table(field),
            lambda field: [*(root.strings(field) or ())],
        ):
            try:
                found += read(field) is not None
            except InvalidArgumentError as error:
                assert "The model of" in str(error)
    return found


def test_buffers_are_read_within_their_bounds() -> None:
    source = random.Random(12)
    outcomes = []
    for model in damaged(MODELS["phrase_plain"].tobytes(), source, 300):
        try:
            outcomes.append(walk(model))
        except InvalidArgumentError as error:
            outcomes.append(-1)
            assert "The model of" in str(error)
    assert -1 in outcomes
    assert max(outcomes) > 16


@pytest.mark.parametrize("size", range(12))
def test_buffers_of_few_bytes(size: int) -> None:
    for byte in (0, 1, 4, 255):
        with pytest.raises(InvalidArgumentError, match=f"The model of {size} bytes"):
            FlatBuffer(np.full(size, byte, np.uint8), "model").root().string(0, "name")


def test_tries_end_where_they_lead_outside() -> None:
    trie = FlatBuffer(MODELS["lower_True"], "model").root().vector(1, "<u4")
    assert trie is not None
    source = np.random.default_rng(13)
    keys = []
    for _ in range(300):
        units = trie[: source.integers(0, len(trie))].copy()
        places = source.integers(0, max(len(units), 1), 50)
        if len(units):
            units[places] ^= source.integers(0, 2**32, 50, np.uint32)
            units[0] = trie[0] if source.random() < 0.5 else units[0]
        for character in ("é", "İ", "你", "\U0001d400", "\0"):
            for value, length in DoubleArray(units).prefixes(character.encode() * 5, 0):
                keys.append(length)
                assert 0 <= value < 2**31
                assert 0 < length <= 20
    assert len({*keys}) > 1
