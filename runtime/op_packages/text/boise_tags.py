"""BOISE tags: spans of tokens as a tag for each token, and back.

A tag is O outside of every span, or B-, I-, E- (first, inner, last token of a span) or S- (its only
token) with the span's type.

TF: tensorflow_text/core/kernels/boise_offset_converter.cc
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import items_of, string_tensor
from runtime.framework.tensor_value import TensorValue

_OUTSIDE = b"O"
_TAG = 100  # bytes of a tag beside those of its type
Span = tuple[int, int, bytes]


def offsets_to_boise_tags(
    token_begins: np.ndarray,
    token_ends: np.ndarray,
    span_begins: np.ndarray,
    span_ends: np.ndarray,
    span_types: np.ndarray,
    token_begin_splits: np.ndarray,
    token_end_splits: np.ndarray,
    span_begin_splits: np.ndarray,
    span_end_splits: np.ndarray,
    span_type_splits: np.ndarray,
    use_strict_boundary_mode: np.ndarray,
) -> np.ndarray:
    """TFText>OffsetsToBoiseTags: return the tag of each token `[tokens]`.

    In strict mode a token that a span's boundary cuts is outside of the span.
    """
    token_rows = _rows("Token", (token_begin_splits, token_end_splits), token_begins, token_ends)
    span_rows = _rows(
        "Span", (span_begin_splits, span_end_splits, span_type_splits),
        span_begins, span_ends, span_types,
    )  # fmt: skip
    if len(token_rows) != len(span_rows):
        raise InvalidArgumentError(
            f"There are {len(token_rows)} rows of tokens, but {len(span_rows)} of spans"
        )
    is_strict = bool(np.asarray(use_strict_boundary_mode).item())
    begins, ends = token_begins.tolist(), token_ends.tolist()
    spans = list(zip(span_begins.tolist(), span_ends.tolist(), items_of(span_types), strict=True))
    tags: list[bytes] = []
    for tokens, row in zip(token_rows, span_rows, strict=True):
        check_task()
        tags += _tags(list(zip(begins[tokens], ends[tokens], strict=True)), spans[row], is_strict)
    return string_tensor(tags)


def _tags(tokens: list[tuple[int, int]], spans: list[Span], is_strict: bool) -> Iterator[bytes]:
    """Yield the tag of each token of a row; `spans` are in the order of the tokens."""
    place = 0
    for begin, end in tokens:
        tag = _OUTSIDE  # of a span that ends in this token, which a later span may replace
        while place < len(spans):
            first, last, kind = spans[place]
            if end <= first:
                break
            if begin >= last:
                place += 1
                continue
            covers_first = begin <= first and end <= last
            covers_last = end >= last and begin >= first
            if covers_first and covers_last:
                tag, place = b"S-" + kind, place + 1
                break
            if covers_first:
                tag = tag if is_strict and begin != first else b"B-" + kind
                break
            if covers_last:
                place += 1
                if is_strict and end != last:
                    break
                tag = b"E-" + kind
                continue
            if first <= begin and end <= last:
                tag = b"I-" + kind
                break
            tag, place = b"B-" + kind, place + 1  # the token is longer than the span on both sides
        yield tag


def boise_tags_to_offsets(
    token_begins: np.ndarray,
    token_ends: np.ndarray,
    boise_tags: np.ndarray,
    token_begin_splits: np.ndarray,
    token_end_splits: np.ndarray,
    tag_splits: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """TFText>BoiseTagsToOffsets: return begins, ends and types of the spans, and row splits."""
    rows = _rows(
        "Token", (token_begin_splits, token_end_splits, tag_splits),
        token_begins, token_ends, boise_tags,
    )  # fmt: skip
    begins, ends, tags = token_begins.tolist(), token_ends.tolist(), items_of(boise_tags)
    spans: list[Span] = []
    splits = [0]
    for row in rows:
        check_task()
        spans += _spans(list(zip(begins[row], ends[row], tags[row], strict=True)))
        splits.append(len(spans))
    return (
        np.array([span[0] for span in spans], np.int32),
        np.array([span[1] for span in spans], np.int32),
        string_tensor(span[2] for span in spans),
        np.array(splits, np.int64),
    )


def _spans(tokens: list[tuple[int, int, bytes]]) -> Iterator[Span]:
    """Yield the spans of a row: B or I begins one, E or S ends it or is one; O ends it before."""
    start: int | None = None
    kind, before = b"", 0
    for begin, end, tag in tokens:
        # TensorFlow takes a type for one that ends at its first zero byte
        letter, rest = tag[:2], tag[2:].split(b"\0", 1)[0]
        if letter in (b"E-", b"S-"):
            yield begin if start is None else start, end, rest
            start = None
        elif letter in (b"B-", b"I-"):
            start, kind = begin if start is None else start, rest
        elif tag[:1] == _OUTSIDE and start is not None:
            yield start, before, kind
            start = None
        before = end
    if start is not None:
        yield start, before, kind


def _rows(what: str, splits: tuple[np.ndarray, ...], *values: np.ndarray) -> list[slice]:
    """Return the rows that all splits give; raise InvalidArgumentError if they do not agree."""
    first, *others = splits
    sizes = {len(each) for each in values}
    if len(sizes) != 1 or any(not np.array_equal(first, each) for each in others):
        raise InvalidArgumentError(
            f"{what} offsets must have the same size and row splits, got sizes "
            f"{sorted(sizes)} and row splits {[each.tolist()[:20] for each in splits]}"
        )
    ends = first.tolist()
    if not ends or ends[0] < 0 or ends[-1] > len(values[0]) or (np.diff(first) < 0).any():
        raise InvalidArgumentError(
            f"{what} row splits must ascend from 0 to at most {len(values[0])}, got {ends[:20]}"
        )
    return [slice(begin, end) for begin, end in itertools.pairwise(ends)]


def _tags_memory(
    token_begins: np.ndarray, _: TensorValue, begins: TensorValue, ends: TensorValue,
    span_types: np.ndarray, *others: TensorValue,
) -> int:  # fmt: skip
    longest = max(map(len, items_of(span_types)), default=0)
    return len(token_begins) * (_TAG + longest) + 200 * len(span_types)


def _spans_memory(token_begins: np.ndarray, _: TensorValue, tags: np.ndarray, *__: object) -> int:
    return sum(map(len, items_of(tags))) + len(token_begins) * 3 * _TAG


KERNELS = (
    KernelDef("TFText>BoiseTagsToOffsets", boise_tags_to_offsets, memory=_spans_memory),
    KernelDef("TFText>OffsetsToBoiseTags", offsets_to_boise_tags, memory=_tags_memory),
)
