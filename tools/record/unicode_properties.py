"""Records the Unicode properties that the ops of TF Text use, from TF Text itself.

TF Text contains ICU, whose version of Unicode is not that of Python's module unicodedata. This
program finds what the ops do with each code point, and writes what unicodedata can't say to
`runtime/op_packages/text/unicode_properties.npz`. It runs where tensorflow_text is installed, with
Python 3.11, whose unicodedata has the oldest version of Unicode that Runstep may meet:

    python tools/record/unicode_properties.py
"""

from __future__ import annotations

import pathlib
import unicodedata

import numpy as np
import tensorflow_text  # noqa: F401 - registers the ops
from tensorflow_text.python.ops.normalize_ops import gen_normalize_ops as normalize_ops
from tensorflow_text.python.ops.sentence_breaking_ops import (
    gen_sentence_breaking_ops as sentence_ops,
)
from tensorflow_text.python.ops.state_based_sentence_breaker_op import (
    gen_state_based_sentence_breaker_op as fragments_ops,
)
from tensorflow_text.python.ops.unicode_script_tokenizer import (
    gen_unicode_script_tokenizer as script_ops,
)

TARGET = pathlib.Path(__file__).parents[2] / "runtime/op_packages/text/unicode_properties.npz"
OLDEST = "14.0.0"  # the version of Unicode of Python 3.11
LAST = 0x10FFFF
POINTS = [point for point in range(LAST + 1) if not 0xD800 <= point <= 0xDFFF]
TEXTS = [chr(point) for point in POINTS]
BYTES = [text.encode() for text in TEXTS]
# the numbers of `_SENTENCE_BITS` of runtime/op_packages/text/unicode_properties.py
TERMINAL, CLOSE_PUNCTUATION, CLOSE_PARENTHESIS, OPEN_PARENTHESIS, PUNCTUATION = 1, 2, 4, 8, 16
# of the fragments' properties. TF: sentence_fragmenter.h
HAS_TERMINAL, HAS_MULTIPLE, HAS_CLOSE, HAS_SENTENTIAL = 1, 2, 4, 8


def runs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (where runs of equal values begin, the values of the runs)."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1])
    return starts.astype(np.int32), values[starts]


def same_script(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return whether the tokenizer puts the i-th two code points into one token."""
    values = np.stack([first, second], 1).ravel().astype(np.int32)
    splits = np.arange(0, len(values) + 1, 2, dtype=np.int64)
    outer = script_ops.unicode_script_tokenize_with_offsets(
        input_values=values, input_splits=splits, keep_whitespace=True
    ).output_outer_splits.numpy()
    return np.diff(outer) == 1


def scripts() -> np.ndarray:
    """Return a number for the script of each code point, int16 [LAST + 1]; 0 if it is unknown."""
    # White space is a token beside others of its script, so it is compared as if it were none:
    # a run never ends at it alone, since the white space of Unicode has the script Common.
    points = np.arange(LAST + 1)
    joined = same_script(points[:-1], points[1:])
    spaces = np.array([chr(each).isspace() for each in points.tolist()])
    starts = np.concatenate([[0], np.flatnonzero(~joined) + 1])
    found = np.empty(LAST + 1, np.int16)
    representatives: list[int] = [0x10FFFE]  # no character has this code point
    for start, end in zip(starts, [*starts[1:], LAST + 1], strict=True):
        heads = np.array(representatives)
        equal = np.flatnonzero(same_script(heads, np.full(len(heads), start)))
        if spaces[start]:
            number = int(equal[0]) if len(equal) else int(found[ord("!")])
        elif len(equal):
            number = int(equal[0])
        else:
            number = len(representatives)
            representatives.append(int(start))
        found[start:end] = number
    found[spaces] = found[ord("!")]
    return found


def sentence_bits() -> np.ndarray:
    """Return what sentence breakers hold of each code point, uint8 [LAST + 1]."""
    found = np.zeros(LAST + 1, np.uint8)
    alone = fragments_ops.sentence_fragments_v2(BYTES)
    terminal = np.zeros(len(POINTS), bool)
    lengths = alone.output_row_lengths.numpy()
    rows = np.repeat(np.arange(len(POINTS)), lengths)
    np.logical_or.at(terminal, rows, alone.fragment_properties.numpy() & HAS_TERMINAL > 0)
    after = fragments_ops.sentence_fragments_v2([b"!" + each for each in BYTES])
    lengths = after.output_row_lengths.numpy()
    firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    properties = after.fragment_properties.numpy()[firsts]
    whole = after.fragment_end.numpy()[firsts] == [len(each) + 1 for each in BYTES]
    # Behind "!)", a terminal mark goes on with the fragment only if it closes something, too. What
    # only closes, as a quotation mark, never belongs to a fragment.
    closed = fragments_ops.sentence_fragments_v2([b"!)" + each for each in BYTES])
    lengths = closed.output_row_lengths.numpy()
    firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    closes = closed.fragment_end.numpy()[firsts] == [len(each) + 2 for each in BYTES]
    places = np.array(POINTS)
    found[places[terminal]] |= TERMINAL
    found[places[closes]] |= CLOSE_PUNCTUATION
    found[places[whole & (properties & HAS_CLOSE > 0)]] |= CLOSE_PARENTHESIS
    found[places[terminal & (properties & HAS_MULTIPLE > 0)]] |= PUNCTUATION
    words = [word for each in BYTES for word in (each, b"a", b"!", b")")]
    count = len(words)
    opened = sentence_ops.sentence_fragments(
        row_lengths=np.full(len(POINTS), 4),
        token_start=np.arange(count),
        token_end=np.arange(count),
        token_word=words,
        token_properties=np.zeros(count, np.int64),
        input_encoding="UTF-8",
    )
    lengths = opened.output_row_lengths.numpy()
    lasts = np.cumsum(lengths) - 1
    sentential = opened.fragment_properties.numpy()[lasts] & HAS_SENTENTIAL > 0
    found[places[sentential & (lengths == 1)]] |= OPEN_PARENTHESIS
    return found


def normalized(texts: list[bytes], form: str) -> list[str]:
    answers = normalize_ops.normalize_utf8(texts, form).numpy().tolist()
    return [each.decode() for each in answers]


def classes_of_marks() -> dict[int, int]:
    """Return the canonical combining class of each code point that has one."""
    known: dict[int, str] = {}
    for text in TEXTS:
        known.setdefault(unicodedata.combining(text), text)
    del known[0]
    before = normalized([("!" + known[240] + text).encode() for text in TEXTS], "NFD")
    after = normalized([("!" + text + known[1]).encode() for text in TEXTS], "NFD")
    plain = normalized(BYTES, "NFD")
    marks = [
        point
        for point, text, moved, passed in zip(POINTS, plain, before, after, strict=True)
        if text == chr(point)
        and (moved != "!" + known[240] + text or passed != "!" + text + known[1])
    ]
    found = {}
    for mark in marks:
        orders = [f"!{chr(mark)}{each}".encode() for each in known.values()]
        others = [f"!{each}{chr(mark)}".encode() for each in known.values()]
        (found[mark],) = [
            number
            for number, first, second, one, two in zip(
                known, normalized(orders, "NFD"), normalized(others, "NFD"), orders, others,
                strict=True,
            )
            if first.encode() == one and second.encode() == two
        ]  # fmt: skip
    return found


def ends_closed(form: str) -> np.ndarray:
    """Return whether nothing after a code point changes what it becomes, bool [LAST + 1]."""
    follower, becomes = "\u0340", "\u0300"  # a character that always changes
    answer = normalize_ops.normalize_utf8_with_offsets_map(
        [(text + follower).encode() for text in TEXTS], form
    )
    alone = normalized(BYTES, form)
    sources = normalize_ops.find_source_offsets(
        answer.offsets_map,
        np.array([len(each.encode()) for each in alone]),
        np.arange(len(TEXTS) + 1),
    ).numpy()
    found = np.zeros(LAST + 1, bool)
    texts = [each.decode() for each in answer.output.numpy().tolist()]
    for point, one, both, source in zip(POINTS, alone, texts, sources, strict=True):
        found[point] = both == one + becomes and source == len(chr(point).encode())
    return found


def main() -> None:
    assert unicodedata.unidata_version == OLDEST, "requires Python 3.11"
    arrays: dict[str, np.ndarray] = {}
    arrays["script_starts"], arrays["scripts"] = runs(scripts())
    arrays["sentence_starts"], arrays["sentence_bits"] = runs(sentence_bits())
    for form in ("NFC", "NFKC"):
        arrays[f"closed_{form}"], _ = runs(ends_closed(form))
        assert ends_closed(form)[0]
    folded = [each.decode() for each in normalize_ops.case_fold_utf8(BYTES).numpy().tolist()]
    changed = [(a, b) for a, b in zip(TEXTS, folded, strict=True) if a != b]
    arrays["folds"] = np.frombuffer("\0".join(a + b for a, b in changed).encode(), np.uint8)
    marks = classes_of_marks()
    later: list[tuple[int, int, str, str, bool]] = []
    canonical, compatible = normalized(BYTES, "NFD"), normalized(BYTES, "NFKD")
    composed = normalized(BYTES, "NFC")
    for text, nfd, nfkd, nfc in zip(TEXTS, canonical, compatible, composed, strict=True):
        mark = marks.get(ord(text), 0)
        if (mark, nfd, nfkd, nfc) != (
            unicodedata.combining(text) if nfd == text else 0,
            unicodedata.normalize("NFD", text),
            unicodedata.normalize("NFKD", text),
            unicodedata.normalize("NFC", text),
        ):
            later.append((ord(text), mark, nfd, nfkd, nfd != text == nfc))
    points, classes, decomposed, compatibly, composes = zip(*later, strict=True)
    arrays["later"] = np.array(points, np.int32)
    arrays["later_classes"] = np.array(classes, np.uint8)
    arrays["later_NFD"] = np.array(decomposed)
    arrays["later_NFKD"] = np.array(compatibly)
    arrays["later_composes"] = np.array(composes)
    np.savez_compressed(TARGET, **arrays)
    print({key: value.shape for key, value in arrays.items()}, TARGET.stat().st_size)


if __name__ == "__main__":
    main()
