"""Records what TF Text's ops of tokens, trimming, tags and scores answer to random calls.

Runs where tensorflow_text is installed; `tests/extras/text/test_random_cases.py` compares the
answers:

    python tools/record/wordpiece_cases.py [--cases N] [--seed S] [--output FILE]

N is the number of calls of each op. Left out are row splits that do not fit, with which TensorFlow
reads outside of its inputs, as it does for tokens that a model does not have, and shapes that only
graphs refuse.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import random
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow_text.python.metrics import text_similarity_metric_ops
from tensorflow_text.python.ops import (
    boise_offset_converter,
    fast_wordpiece_tokenizer,
    ngrams_op,
    phrase_tokenizer,
    split_merge_from_logits_tokenizer,
    split_merge_tokenizer,
    trimmer_ops,
    wordpiece_tokenizer,
)

from tools.export.token_models import vocabulary
from tools.record.text_cases import Case, called, text, texts, write_cases

OUTPUT = pathlib.Path(__file__).parents[2] / "tests/extras/text/wordpiece_cases.json.gz"
WORDS = texts(random.Random(5), 40)
PIECES = vocabulary(WORDS)
PIECES = [*PIECES[:250], *PIECES[-15:]]
Models = dict[str, Any]


def splits(source: random.Random, rows: int, longest: int, first: int = 0) -> list[int]:
    """Return row splits of random rows, some of which are empty."""
    found = [first]
    for _ in range(rows):
        found.append(found[-1] + source.choice((0, source.randint(0, longest), longest)))
    return found


def some_words(source: random.Random) -> np.ndarray:
    """Return texts, and words of the vocabulary with others between."""
    known = [piece.removeprefix("##").encode() for piece in PIECES]
    found = [text(source) for _ in range(source.randint(0, 3))]
    for _ in range(source.randint(0, 4)):
        parts = [
            source.choice(known) if source.random() < 0.8 else text(source)[:6] for _ in range(4)
        ]
        found.append(source.choice((b"", b"", b" ", b"'")).join(parts))
    return np.array([*found, None], object)[:-1]


def strings(words: np.ndarray) -> tf.Tensor:
    return tf.constant(words.tolist(), tf.string, [len(words)])


def with_model(case: Case, place: int, name: str, model: Any) -> Case:
    """Refer to a model by its name: models are large, and recorded once."""
    case["inputs"][place] = name
    case["models"] = {name: tf.constant(model)}
    return case


# --- vocabularies ---------------------------------------------------------------------------------


def tables() -> Models:
    """Return vocabularies, by name; the tables that look them up have the prefix `table:`."""
    found: Models = {}
    for name, words in (("all", PIECES), ("few", PIECES[6:40]), ("cut", ["a", "##b", "ab", "é"])):
        found[name] = words
        found["table:" + name] = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(words, np.arange(len(words), dtype=np.int64)), -1
        )
    return found


def wordpieces(source: random.Random, known: Models) -> Case:
    name = source.choice(("all", "all", "few", "cut"))
    case = called(
        "WordpieceTokenizeWithOffsets",
        lambda words, _, **attrs: (
            wordpiece_tokenizer.gen_wordpiece_tokenizer.wordpiece_tokenize_with_offsets(
                words, known["table:" + name].resource_handle, **attrs
            )
        ),
        strings(some_words(source)),
        0,
        suffix_indicator=source.choice(("##", "##", "", "\u00e9", "a")),
        max_bytes_per_word=source.choice((100, 100, 10, 3, 0, -1)),
        max_chars_per_token=source.choice((0, 0, 1, 2, 5, -3)),
        use_unknown_token=source.random() < 0.6,
        unknown_token=source.choice(("[UNK]", "", "\u2047")),
        split_unknown_characters=source.random() < 0.5,
        output_row_partition_type=source.choice(("row_lengths", "row_splits")),
    )
    return with_model(case, 1, name, known[name])


# --- models of tokenizers -------------------------------------------------------------------------


def fast_models() -> Models:
    build = tf_text.FastWordpieceTokenizer
    other = [piece.replace("##", "@é") for piece in PIECES]
    return {
        f"wordpiece_{name}": build(pieces, **options)._model
        for name, pieces, options in (
            ("plain", PIECES, {"support_detokenization": True}),
            ("short", PIECES, {"support_detokenization": True, "max_bytes_per_word": 5}),
            ("single", PIECES, {"support_detokenization": True, "no_pretokenization": True}),
            ("other", other, {"support_detokenization": True, "suffix_indicator": "@é"}),
            ("forward", PIECES[:80], {}),
        )
    }


def phrase_models() -> Models:
    phrases = [piece for piece in PIECES[6:] if not piece.startswith("##")]
    phrases = list(dict.fromkeys(["<UNK>", *phrases, "it's", "hello world", "he said", "hello"]))
    build = tf_text.PhraseTokenizer
    return {
        f"phrase_{name}": build(phrases, prob=0, **options)._model
        for name, options in (
            ("plain", {"support_detokenization": True}),
            ("whole", {"support_detokenization": True, "split_end_punctuation": False}),
            ("forward", {"support_detokenization": False}),
        )
    }


def fast_wordpieces(source: random.Random, known: Models) -> Case:
    name = source.choice(sorted(known))
    call = fast_wordpiece_tokenizer.gen_fast_wordpiece_tokenizer
    case = called(
        "FastWordpieceTokenizeWithOffsets",
        call.fast_wordpiece_tokenize_with_offsets,
        strings(some_words(source)),
        known[name],
    )
    return with_model(case, 1, name, known[name])


def phrases(source: random.Random, known: Models) -> Case:
    name = source.choice(sorted(known))
    words = some_words(source)
    words = np.array([*(b" ".join(words[place:]) for place in range(len(words))), None], object)
    call = phrase_tokenizer.gen_phrase_tokenizer.phrase_tokenize
    case = called("PhraseTokenize", call, strings(words[:-1]), known[name])
    return with_model(case, 1, name, known[name])


def detokenized(source: random.Random, known: Models, op: str, call: Callable[..., Any]) -> Case:
    name = source.choice(sorted(known))
    rows = splits(source, source.randint(0, 5), 6, source.choice((0, 0, 2)))
    count = rows[-1] + source.choice((0, 0, 3))
    numbers = [source.randrange(30) for _ in range(count)]
    given = np.array(numbers, np.int32), np.array(rows, np.int64)
    return with_model(called(op, call, *given, known[name]), 2, name, known[name])


def fast_words(source: random.Random, known: Models) -> Case:
    call = fast_wordpiece_tokenizer.gen_fast_wordpiece_tokenizer.tf_text_fast_wordpiece_detokenize
    return detokenized(source, known, "TFText>FastWordpieceDetokenize", call)


def phrase_texts(source: random.Random, known: Models) -> Case:
    call = phrase_tokenizer.gen_phrase_tokenizer.tf_text_phrase_detokenize
    return detokenized(source, known, "TFText>PhraseDetokenize", call)


# --- decisions for characters ---------------------------------------------------------------------


def whole_words(source: random.Random) -> np.ndarray:
    """Return texts none of which ends within a character: TensorFlow would read on behind it."""
    words = some_words(source)
    for place, word in enumerate(words):
        if max(word[-3:], default=0) >= 0xC0:
            words[place] = word + b"..."
    return words


def split_merge(source: random.Random, _: Models) -> Case:
    words = whole_words(source)
    rows = [0]
    for word in words:
        short = -1 if source.random() < 0.02 else source.choice((0, 0, 2))
        rows.append(rows[-1] + max(len(word) + short, 0))
    if source.random() < 0.05:
        rows = rows[:-1] or [0, 0]
    labels = [source.choice((0, 1, 1, 2)) for _ in range(rows[-1] + 3)]
    return called(
        "SplitMergeTokenizeWithOffsets",
        split_merge_tokenizer.gen_split_merge_tokenizer.split_merge_tokenize_with_offsets,
        strings(words),
        np.array(labels, np.int32),
        np.array(rows, np.int32),
        force_split_at_break_character=source.random() < 0.5,
    )


def from_logits(source: random.Random, _: Models) -> Case:
    words = whole_words(source)
    longest = max(map(len, words), default=0)
    shape = [len(words), max(longest - source.choice((0, 0, 0, 4, 40)), 0), 2]
    odd = source.random()
    if odd < 0.04:
        shape[2] = source.choice((1, 3))
    elif odd < 0.1:
        shape[0] += source.choice((1, -1)) if shape[0] else 1
    numbers = np.random.default_rng(source.randrange(2**32))
    logits = numbers.choice([0, 1, 2.5, -1, np.nan, np.inf], shape).astype(np.float32)
    call = split_merge_from_logits_tokenizer.gen_split_merge_from_logits_tokenizer
    force = source.random() < 0.5
    return called("TokenizerFromLogits", call.tokenizer_from_logits, strings(words), logits, force)


# --- rows of values -------------------------------------------------------------------------------


def segments(source: random.Random, count: int, dtypes: list[Any]) -> tuple[Any, ...]:
    """Return the inputs of both trimmers: the length, the values and the row splits."""
    rows = source.randint(0, 4)
    dtype = source.choice(dtypes)
    kind = source.choice((np.int32, np.int64))
    values, ends = [], []
    for _ in range(count):
        found = splits(source, rows, source.choice((1, 4, 9)), source.choice((0, 0, 0, 2)))
        numbers = np.arange(found[-1] + source.choice((0, 0, 2)))
        values.append(
            numbers.astype(bytes).astype(object) if dtype is bytes else numbers.astype(dtype)
        )
        ends.append(np.array(found, kind))
    length = np.int32(source.choice((-2, 0, 1, 2, 3, 5, 8, 13, 40, 2**31 - 1)))
    return length, values, ends


def round_robin(op: str, function: str) -> Callable[[random.Random, Models], Case]:
    dtypes = [
        bytes, bool, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8,
        np.uint16, np.uint32, np.uint64,
    ]  # fmt: skip
    call = getattr(trimmer_ops.gen_trimmer_ops, function)

    def make(source: random.Random, _: Models) -> Case:
        count = source.randint(1, 4)
        length, values, ends = segments(source, count, dtypes)

        def flat(length: Any, *lists: Any) -> list[Any]:
            found = call(length, list(lists[:count]), list(lists[count:]))
            parts = found if isinstance(found, list) else [*found.values, *found.row_splits]
            return list(parts)

        values = [strings(each) if each.dtype == object else each for each in values]
        return called(op, flat, length, *values, *ends)

    return make


def ngrams(source: random.Random, _: Models) -> Case:
    outer = splits(source, source.randint(0, 3), 3)
    inner = splits(source, outer[-1], source.choice((2, 6)))
    words = np.array([text(source)[:8] for _ in range(inner[-1])] + [None], object)[:-1]
    rows = [np.array(each, np.int64) for each in source.choice(([inner], [outer, inner]))]

    def flat(words: Any, *rows: Any, **attrs: Any) -> list[Any]:
        call = ngrams_op.gen_ngrams_op.tf_text_ngrams_string_join
        found = call(words, list(rows), **attrs)
        return [found.output_values, *found.output_row_splits]

    return called(
        "TFText>NgramsStringJoin",
        flat,
        strings(words),
        *rows,
        width=source.choice((1, 2, 2, 3, 5, 0, -1)),
        axis=-1 if source.random() < 0.95 else source.choice((0, 1)),
        string_separator=source.choice((" ", "", "|é")),
    )


def rouge(source: random.Random, _: Models) -> Case:
    rows = source.randint(0, 5)
    kind = source.choice((np.int32, np.int64))
    dtype = source.choice((np.int32, np.int64, bytes))
    inputs: list[Any] = []
    for _ in range(2):
        ends = splits(source, rows + (source.random() < 0.04), 9, source.choice((0, 0, 1)))
        values = np.array([source.randrange(5) for _ in range(ends[-1])])
        if dtype is bytes:
            inputs.append(strings(values.astype(bytes).astype(object)))
        else:
            inputs.append(values.astype(dtype))
        inputs.append(np.array(ends, kind))
    if source.random() < 0.03:
        inputs[1] = inputs[3] = np.zeros(0, kind)
    alpha = np.float32(source.choice((-1, 0, 0.5, 1, 0.3, 1.5, -0.0, 0.9999)))
    return called("RougeL", text_similarity_metric_ops.gen_text_similarity_metric_ops.rouge_l,
                  *inputs, alpha)  # fmt: skip


def spans(source: random.Random, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return begins and ends, most of them in order."""
    ends = np.cumsum([source.choice((0, 1, 2, 5)) for _ in range(2 * count)]).astype(np.int32)
    if count and source.random() < 0.2:
        source.shuffle(both := ends.tolist())
        ends = np.array(both, np.int32)
    return ends[::2], ends[1::2]


def broken(source: random.Random, rows: list[np.ndarray]) -> list[np.ndarray]:
    """Return row splits that may differ from each other."""
    if source.random() < 0.06 and len(rows[0]) > 1:
        place = source.randrange(len(rows))
        rows[place] = rows[place][:-1] if source.random() < 0.5 else rows[place] - 1
    return rows


def boise(source: random.Random, _: Models) -> Case:
    rows = source.randint(0, 4)
    ends = [np.array(splits(source, rows, size), np.int64) for size in (8, 4)]
    tokens, marked = (spans(source, int(each[-1])) for each in ends)
    kinds = [source.choice((b"loc", b"x", b"", b"a\0b")) for _ in marked[0]]
    if source.random() < 0.04:
        tokens = tokens[0], tokens[1][1:]
    return called(
        "TFText>OffsetsToBoiseTags",
        boise_offset_converter.gen_boise_offset_converter.tf_text_offsets_to_boise_tags,
        *tokens,
        *marked,
        tf.constant(kinds, tf.string, [len(kinds)]),
        *broken(source, [ends[0]] * 2),
        *broken(source, [ends[1]] * 3),
        source.random() < 0.5,
    )


def boise_back(source: random.Random, _: Models) -> Case:
    ends = np.array(splits(source, source.randint(0, 4), 8), np.int64)
    tokens = spans(source, int(ends[-1]))
    letters = ("O", "O", "B-", "I-", "E-", "S-", "B", "X-", "o", "")
    tags = [source.choice(letters) + source.choice(("", "loc", "per", "a\0b")) for _ in tokens[0]]
    if source.random() < 0.04:
        tags = tags[1:]
    return called(
        "TFText>BoiseTagsToOffsets",
        boise_offset_converter.gen_boise_offset_converter.tf_text_boise_tags_to_offsets,
        *tokens,
        tf.constant(tags, tf.string, [len(tags)]),
        *broken(source, [ends] * 3),
    )


def makers() -> list[tuple[Callable[[random.Random, Models], Case], Models]]:
    fast, known = fast_models(), phrase_models()
    trim, mask = "TFText>RoundRobinTrim", "TFText>RoundRobinGenerateMasks"
    return [
        (wordpieces, tables()), (fast_wordpieces, fast), (fast_words, fast), (phrases, known),
        (phrase_texts, known), (split_merge, {}), (from_logits, {}),
        (round_robin(trim, "tf_text_round_robin_trim"), {}),
        (round_robin(mask, "tf_text_round_robin_generate_masks"), {}),
        (ngrams, {}), (rouge, {}), (boise, {}), (boise_back, {}),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--output", type=pathlib.Path, default=OUTPUT)
    chosen = parser.parse_args()
    source = random.Random(chosen.seed)
    found: list[Case] = []
    for number, (make, known) in enumerate(makers(), 1):
        while len(found) < number * chosen.cases:
            # an error that quotes malformed text can't be read
            with contextlib.suppress(UnicodeDecodeError):
                found.append(make(source, known))
    print(sum("error" in case for case in found), "are refused")
    write_cases(found, chosen.output)


if __name__ == "__main__":
    main()
