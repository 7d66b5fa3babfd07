"""The memory bounds of the ops hold, also for texts that take much."""

from __future__ import annotations

import inspect
import tracemalloc
from typing import Any

import numpy as np
import pytest

from runtime.framework.dtypes import DataType
from runtime.framework.op_packages import kernels_of_package
from runtime.framework.string_tensor import string_tensor
from tests.extras.text.text_cases import RECORDED, call, read_cases

MODEL = next(case for case in read_cases(RECORDED) if case.op == "FastBertNormalize").inputs[1]
SIZE = 1 << 14
TEXTS = {
    "ascii": b"Hello, World! " * (SIZE // 14),
    "several": "Straße ﬁ été 한국어 。( ".encode() * (SIZE // 36),
    "malformed": b"\xff" * SIZE,
    "marks": b"a" + "\u0301".encode() * (SIZE // 2),
    "points": b"." * SIZE,
    "wide": "\U00016121".encode() * (SIZE // 4),
    "growing": "\ufdfa".encode() * (SIZE // 3),
    "emoticons": b":-)" * (SIZE // 3),
    "short": b"",
}
SPACES = np.array(
    np.packbits([i in (9, 32) for i in range(40)], bitorder="little").tobytes(), object
)
CALLS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("CaseFoldUTF8", [], {}),
    ("NormalizeUTF8", [], {"normalization_form": "NFKC"}),
    ("NormalizeUTF8WithOffsetsMap", [], {"normalization_form": "NFKD"}),
    ("NormalizeUTF8WithOffsetsMap", [], {"normalization_form": "NFC"}),
    ("FastBertNormalize", [MODEL], {"get_offsets": True}),
    ("FastBertNormalize", [MODEL], {"get_offsets": False}),
    ("TFText>WhitespaceTokenizeWithOffsetsV2", [SPACES], {}),
    (
        "RegexSplitWithOffsets",
        [np.array(rb"(\s|\pP)", object), np.array(b".", object)],
        {},
    ),
    ("SentenceFragmentsV2", [], {}),
    ("TFText>ByteSplitWithOffsets", [], {}),
    (
        "TFText>Utf8Binarize",
        [],
        {"word_length": 9, "bits_per_char": 24, "replacement_char": 0},
    ),
]


def check(op: str, inputs: list[Any], attrs: dict[str, Any]) -> None:
    kernels, _ = kernels_of_package(op)
    memory = kernels[0].memory
    assert callable(memory)
    parameters = inspect.signature(memory).parameters.values()
    named = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    need = memory(*inputs, **{name: attrs[name] for name in named})
    tracemalloc.start()
    try:
        call(op, inputs, attrs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= need + (1 << 13)


@pytest.mark.parametrize(("op", "more", "attrs"), CALLS)
@pytest.mark.parametrize("name", TEXTS)
def test_texts(op: str, more: list[Any], attrs: dict[str, Any], name: str) -> None:
    # what is read once and kept is not part of a call
    call(op, [string_tensor([TEXTS[name][:300], b"\xc3\xa9"]), *more], attrs)
    texts = string_tensor([b""] * 5000) if name == "short" else string_tensor([TEXTS[name]])
    check(op, [texts, *more], attrs)


PIECES = {
    name: next(
        case.inputs[0]
        for case in read_cases(RECORDED.with_name("sentencepiece_cases.json.gz"))
        if case.op == op and len(case.inputs[0]) in sizes
    )
    for name, op, sizes in (
        ("nfkc", "TFText>FastSentencepieceTokenize", range(100_000, 10**6)),
        ("identity", "TFText>FastSentencepieceTokenize", range(100_000)),
        ("texts", "TFText>FastSentencepieceDetokenize", range(10**6)),
    )
}


@pytest.mark.parametrize("model", ["nfkc", "identity"])
@pytest.mark.parametrize("name", TEXTS)
def test_pieces(model: str, name: str) -> None:
    text = TEXTS[name][: SIZE // 8]
    texts = string_tensor([b""] * 5000) if name == "short" else string_tensor([text] * 4)
    options = [np.int32(0), np.float32(0), *[np.bool_(True)] * 3]
    op = "TFText>FastSentencepieceTokenize"
    call(op, [PIECES[model], string_tensor([b"a"]), *options], {})
    check(op, [PIECES[model], texts, *options], {})


def test_texts_of_pieces() -> None:
    numbers = np.arange(SIZE, dtype=np.int32) % 40
    for rows in (np.array([0, SIZE]), np.arange(SIZE + 1), np.zeros(SIZE, np.int32)):
        inputs = [PIECES["texts"], numbers, rows]
        call("TFText>FastSentencepieceDetokenize", [inputs[0], numbers[:1], rows[:1]], {})
        check("TFText>FastSentencepieceDetokenize", inputs, {})


def test_offsets() -> None:
    texts = string_tensor([TEXTS["several"]])
    found, maps = call("NormalizeUTF8WithOffsetsMap", [texts], {"normalization_form": "NFKC"})
    count = len(found[0])
    check("FindSourceOffsets", [maps, np.arange(count), np.array([0, count])], {})


def test_code_points() -> None:
    points = np.arange(SIZE, dtype=np.int32) % 300
    splits = np.arange(0, SIZE + 1, 2)
    attrs = {"Tsplits": DataType.INT64, "keep_whitespace": False}
    check("UnicodeScriptTokenizeWithOffsets", [points, splits], attrs)
    check("WhitespaceTokenizeWithOffsets", [points, splits], {"Tsplits": DataType.INT64})


def test_tokens() -> None:
    words = string_tensor([b"(", b"\xc3\xa9", b"!", str(5).encode() * 60] * 5000)
    zeros = np.zeros(len(words), np.int64)
    inputs = [np.array([len(words)]), zeros, zeros, words, zeros]
    check("SentenceFragments", inputs, {"input_encoding": "UTF-8"})


def test_parts() -> None:
    texts = string_tensor([b"abc"] * 5000)
    zeros = np.zeros(5000, np.int32)
    inputs = [texts, zeros, zeros + 3, np.arange(5001)]
    check("TFText>ByteSplitByOffsets", inputs, {})
