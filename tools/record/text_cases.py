"""Records what TF Text's ops answer to random texts.

Runs where tensorflow_text is installed; the answers are those of the ops that
`tests/extras/text/test_text_cases.py` compares:

    python tools/record/text_cases.py [--texts N] [--seed S] [--output FILE]
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text
from tensorflow_text.python.ops import (
    byte_splitter,
    fast_bert_normalizer,
    normalize_ops,
    regex_split_ops,
    sentence_breaking_ops,
    state_based_sentence_breaker_op,
    unicode_script_tokenizer,
    utf8_binarize_op,
    whitespace_tokenizer,
)

FOLDER = pathlib.Path(tensorflow_text.__file__).parent / "python/ops"
OUTPUT = pathlib.Path(__file__).parents[2] / "tests/extras/text/text_cases.json.gz"
# Ranges of code points: what writing is mostly made of, and what normal forms change.
RANGES = (
    (0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F),
    (0x590, 0x5F4), (0x600, 0x6FF), (0x900, 0x97F), (0x9C0, 0x9E0), (0xB40, 0xB57), (0xE00, 0xE5B),
    (0xF00, 0xFFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1161, 0x1175), (0x11A8, 0x11C2),
    (0x1DC0, 0x1DFF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x218F), (0x2190, 0x27BF),
    (0x3000, 0x30FF), (0x3130, 0x318F), (0x4E00, 0x4E40), (0xAC00, 0xAC40), (0xD7A0, 0xD7FB),
    (0xF900, 0xFAD9), (0xFB00, 0xFDFF), (0xFE00, 0xFEFF), (0xFF00, 0xFFEF), (0x1F300, 0x1F64F),
    (0x1D15E, 0x1D1C0), (0x1D400, 0x1D4FF), (0x2F800, 0x2FA1D), (0x110BA, 0x110C0),
    (0x11380, 0x113E2), (0x16120, 0x16139), (0x1611E, 0x1612F), (0x16D60, 0x16D6A),
    (0x105C9, 0x105E5), (0x10D69, 0x10D6D), (0x1CCD6, 0x1CCF9), (0x1E030, 0x1E06D),
    (0x105D0, 0x105DA), (0, 0x1F), (0xE000, 0xE010), (0x10FFF0, 0x10FFFF),
)  # fmt: skip
PIECES = (
    "e\u0301", "A\u030a", "\u0340", "\u0344", "\u0f73", "\u1100\u1161\u11a8", "\uac00\u11a8",
    "\u00a0", "\u3000", " ", "  ", "\n", "\u2028", "...", "\u2026", "!", "?!", ". ", "U.S.A. ",
    ":-)", ";-*", ";-*=(", ">:[", "(", ")", "]", "\u3002", "''", "\u00bb", "\u2029", "\u200d",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u05d0\u05b7", "\u0644\u0627", "na\u00efve",
    "Stra\u00dfe", "\u0130stanbul", "\ufb03", "\u00bd", "\ufeff", "\0", "word", "Hello", "12,5",
    "\u0958", "\u2126", "\u212b", "\ufdfa", "\U0001d15f", "\u0345", "\u0334", "\u3099",
    "\u304b\u3099", "\u1161", "\u11a8", "\u1100", "\uac00", "\u0cc6\u0cc2\u0cd5",
)  # fmt: skip
MALFORMED = (
    b"\x80",
    b"\xe4\xb8",
    b"\xf0\x9f\x98",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xff",
    b"\xf4\x90",
)
EXPRESSIONS = (
    (r"(\s)", r""), (r"(\s+)", r"(\s)"), (r"([.!?])", r"([.?])"), (r"(\pP)", r"(\pP)"),
    (r"(^a|b)", r"(.)"), (r"(\b\w)", r""), (r"(e)(x)?", r"(e)"), (r"a(b*)c*", r"b+"), (r"x", r"x"),
    (r"(.\pM)", r"(..)"), (r"(\d+,?)$", r"(\d+)"), (r"([\s\S])", r"([a-z])"),
)  # fmt: skip


def texts(source: random.Random, count: int) -> list[bytes]:
    return [text(source) for _ in range(count)]


def text(source: random.Random) -> bytes:
    parts: list[bytes] = []
    favourites = source.sample(RANGES, 3)
    for _ in range(source.choice((0, 1, 2, 3, 5, 8, 13, 20))):
        choice = source.random()
        if choice < 0.03:
            parts.append(source.choice(MALFORMED))
        elif choice < 0.35:
            parts.append(source.choice(PIECES).encode())
        elif choice < 0.4:
            parts.append(chr(source.choice((0x21, 0x2E, 0x3002, 0x29, 0x22, 0x201D))).encode())
        else:
            first, last = source.choice(favourites if choice < 0.9 else RANGES)
            parts.append(chr(source.randint(first, last)).encode())
    return b"".join(parts)


Case = dict[str, Any]


def called(op: str, call: Callable[..., Any], *inputs: Any, **attrs: Any) -> Case:
    """Return the case of a call: the inputs, attributes, and outputs or the error's code."""
    tensors = [tf.convert_to_tensor(each) for each in inputs]
    case: Case = {"op": op, "inputs": tensors, "attrs": attrs}
    try:
        found = call(*tensors, **attrs)
    except tf.errors.OpError as error:
        case["error"] = error.error_code
        return case
    outputs = list(found) if isinstance(found, tuple | list) else [found]
    case["outputs"] = outputs
    return case


def normal_forms(words: list[bytes]) -> Iterator[Case]:
    ops = normalize_ops.gen_normalize_ops
    yield called("CaseFoldUTF8", ops.case_fold_utf8, words)
    for form in ("NFC", "nfd", "NFKC", "NFKD"):
        yield called("NormalizeUTF8", ops.normalize_utf8, words, normalization_form=form)
    yield called("NormalizeUTF8", ops.normalize_utf8, words[:1], normalization_form="NFX")
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield called("NormalizeUTF8WithOffsetsMap", mapped, words, normalization_form=form)


def mapped(words: tf.Tensor, normalization_form: str) -> list[Any]:
    """Return the normal forms, and the source offset of each of their bytes and of one behind."""
    ops = normalize_ops.gen_normalize_ops
    found, maps = ops.normalize_utf8_with_offsets_map(words, normalization_form)
    lengths = [len(each) + 2 for each in found.numpy().tolist()]
    offsets = np.concatenate([np.arange(each) for each in lengths]).astype(np.int64)
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return [found, ops.find_source_offsets(maps, offsets, splits)]


def tokenizers(words: list[bytes]) -> Iterator[Case]:
    script = unicode_script_tokenizer.gen_unicode_script_tokenizer
    # No function of the package calls the first version any more.
    first = tf.load_op_library(str(FOLDER / "_whitespace_tokenizer.so"))
    white = whitespace_tokenizer.gen_whitespace_tokenizer_v2
    points = tf.strings.unicode_decode(words, "UTF-8")
    odd = np.array([-1, 0xD800, 0xD801, 0x110000, 0x7FFFFFFF, 65, 0x378], np.int32)
    values = np.concatenate([points.values.numpy(), odd])
    splits = np.append(points.row_splits.numpy(), len(values))
    for dtype in (np.int64, np.int32):
        given = (values, splits.astype(dtype))
        for keep in (False, True):
            yield called(
                "UnicodeScriptTokenizeWithOffsets",
                script.unicode_script_tokenize_with_offsets,
                *given,
                keep_whitespace=keep,
            )
        yield called(
            "WhitespaceTokenizeWithOffsets",
            first.whitespace_tokenize_with_offsets,
            *given,
        )
    config = tensorflow_text.WhitespaceTokenizer()._config
    name = "TFText>WhitespaceTokenizeWithOffsetsV2"
    tokenize = white.tf_text_whitespace_tokenize_with_offsets_v2
    yield called(name, tokenize, words, config)
    for other in (b"", b"\0" * 12 + b"\xff\x01"):
        yield called(name, tokenize, words[:100], other)
    for expression, kept in EXPRESSIONS:
        yield called(
            "RegexSplitWithOffsets",
            regex_split_ops.gen_regex_split_ops.regex_split_with_offsets,
            words,
            expression,
            kept,
        )
    for expression, kept in (("(", ""), ("(a)", ")")):
        yield called(
            "RegexSplitWithOffsets",
            regex_split_ops.gen_regex_split_ops.regex_split_with_offsets,
            words[:2],
            expression,
            kept,
        )


def bytes_of(words: list[bytes], source: random.Random) -> Iterator[Case]:
    split = byte_splitter.gen_byte_splitter
    yield called("TFText>ByteSplitWithOffsets", split.tf_text_byte_split_with_offsets, words[:300])
    starts: list[int] = []
    ends: list[int] = []
    splits = [0]
    for word in words:
        for _ in range(source.randint(0, 3)):
            start = source.randint(0, len(word))
            starts.append(start)
            ends.append(source.randint(start, len(word)))
        splits.append(len(starts))
    name, call = "TFText>ByteSplitByOffsets", split.tf_text_byte_split_by_offsets
    rows = np.array(splits, np.int64)
    given = np.array(starts, np.int32), np.array(ends, np.int32)
    yield called(name, call, words, *given, rows)
    for start, end in ((-1, 1), (0, 9), (2, 1), (9, 9)):
        one = np.array([start], np.int32), np.array([end], np.int32), np.array([0, 1], np.int64)
        yield called(name, call, [b"abc"], *one)
    for length, bits, replacement in ((5, 24, 65533), (3, 7, 0), (1, 40, -2), (0, 8, 0)):
        yield called(
            "TFText>Utf8Binarize",
            utf8_binarize_op.gen_utf8_binarize_op.tf_text_utf8_binarize,
            words[:200],
            word_length=length,
            bits_per_char=bits,
            replacement_char=replacement,
        )


def sentences(words: list[bytes], source: random.Random) -> Iterator[Case]:
    second = state_based_sentence_breaker_op.gen_state_based_sentence_breaker_op
    first = sentence_breaking_ops.gen_sentence_breaking_ops
    yield called("SentenceFragmentsV2", second.sentence_fragments_v2, words)
    tokens, lengths = [], []
    marks = ["...", "''", ".", "!", ")", "(", '"', "\u3002", "\u2026", "word", "U.S.", "\u300c"]
    for word in words:
        row = [part for part in word.split() if part]
        for _ in range(source.randint(0, 8)):
            row.insert(source.randint(0, len(row)), source.choice(marks).encode())
        tokens += row
        lengths.append(len(row))
    properties = [source.choice((0, 0, 0, 0x80, 0x100, 0x180)) for _ in tokens]
    places = np.arange(len(tokens), dtype=np.int64)
    given = [np.array(lengths, np.int64), places, places, np.array(tokens, object)]
    for encoding in ("UTF-8", "ISO-8859-1"):
        yield called(
            "SentenceFragments",
            first.sentence_fragments,
            *given,
            np.array(properties, np.int64),
            input_encoding=encoding,
        )
    one = np.zeros(1, np.int64)
    for length, token, encoding in ((1, b"", "UTF-8"), (2, b"a", "UTF-8"), (1, b"a", "nothing")):
        yield called(
            "SentenceFragments",
            first.sentence_fragments,
            one + length, one, one, np.array([token], object), one,
            input_encoding=encoding,
        )  # fmt: skip


def bert(words: list[bytes]) -> Iterator[Case]:
    build = fast_bert_normalizer.pywrap_fast_bert_normalizer_model_builder
    call = fast_bert_normalizer.gen_fast_bert_normalizer.fast_bert_normalize
    for lower in (True, False):
        model = build.build_fast_bert_normalizer_model(lower)
        data = np.frombuffer(model, np.uint8)
        for offsets in (True, False):
            case = called("FastBertNormalize", call, words, data, get_offsets=offsets)
            case["inputs"][1] = f"lower_{lower}"  # the model is large, and recorded once
            case["models"] = {f"lower_{lower}": tf.constant(data)}
            yield case


def packed(tensor: Any) -> Any:
    """Return a tensor as JSON; strings as text whose characters are bytes."""
    if isinstance(tensor, str):
        return tensor
    array = tensor.numpy()
    if isinstance(array, bytes):
        return {"dtype": "string", "shape": [], "data": [array.decode("latin-1")]}
    data = array.ravel().tolist()
    if array.dtype == object:
        data = [each.decode("latin-1") for each in data]
    return {"dtype": tensor.dtype.name, "shape": list(array.shape), "data": data}


def write_cases(cases: list[Case], output: pathlib.Path) -> None:
    """Write cases as JSON; equal tensors are written once."""
    models: dict[str, Any] = {}
    shared: list[Any] = []
    known: dict[str, int] = {}
    for case in cases:
        models |= case.pop("models", {})
        for part in ("inputs", "outputs"):
            for index, each in enumerate(case.get(part, ())):
                value = packed(each)
                key = json.dumps(value)
                if key not in known:
                    known[key] = len(shared)
                    shared.append(value)
                case[part][index] = known[key]
    packed_models = {key: packed(each) for key, each in models.items()}
    recorded = json.dumps({"cases": cases, "tensors": shared, "models": packed_models})
    output.write_bytes(gzip.compress(recorded.encode(), 9, mtime=0))
    print(len(cases), "cases", output.stat().st_size, "bytes")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=120)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--output", type=pathlib.Path, default=OUTPUT)
    chosen = parser.parse_args()
    source = random.Random(chosen.seed)
    words = texts(source, chosen.texts)
    cases = [*normal_forms(words), *tokenizers(words), *bytes_of(words, source)]
    cases += [*sentences(words, source), *bert(words)]
    write_cases(cases, chosen.output)


if __name__ == "__main__":
    main()
