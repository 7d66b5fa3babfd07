"""Normal forms, of well-formed and malformed texts, and the offsets in them."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from runtime.foundation.errors import CancelledError, InvalidArgumentError
from runtime.foundation.running_task import set_running_task
from runtime.framework.string_tensor import string_tensor
from runtime.op_packages.text.normalization import (
    case_fold_utf8,
    find_source_offsets,
    normalize_utf8,
    normalize_utf8_with_offsets_map,
)


def texts(*items: str | bytes) -> np.ndarray:
    return string_tensor(item if isinstance(item, bytes) else item.encode() for item in items)


def normalized(text: str | bytes, form: str) -> bytes:
    found = normalize_utf8(texts(text), normalization_form=form)
    assert isinstance(found[0], bytes)
    return found[0]


def sources(text: str | bytes, form: str) -> list[int]:
    """The source of each byte of the normal form, and of its end."""
    found, maps = normalize_utf8_with_offsets_map(texts(text), normalization_form=form)
    count = len(found[0]) + 1
    result: list[int] = find_source_offsets(maps, np.arange(count), np.array([0, count])).tolist()
    return result


@pytest.mark.parametrize(
    ("form", "want"),
    [("NFC", "é½ﬁ"), ("nfd", "e\u0301½ﬁ"), ("NFKC", "é1⁄2fi"), ("NFKD", "e\u03011⁄2fi")],
)
def test_forms(form: str, want: str) -> None:
    assert normalized("e\u0301½ﬁ", form) == want.encode()


def test_an_unknown_form_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="Unknown normalization form requrested: NFX"):
        normalized("a", "NFX")
    with pytest.raises(InvalidArgumentError, match="not supported for this normalization form"):
        normalize_utf8_with_offsets_map(texts("a"), normalization_form="")


def test_case_folding_drops_what_is_invisible() -> None:
    found = case_fold_utf8(texts("STRASSE", "Straße\u00ad", "ﬁ\u200dX", b"\xffA\xc3", ""))
    assert found.tolist() == [b"strasse", b"strasse", b"fix", b"\xffa\xc3", b""]


def test_scalars_and_matrices_keep_their_shapes() -> None:
    assert case_fold_utf8(np.array(b"A", object)).shape == ()
    matrix = texts("A", "é").reshape(2, 1)
    found, maps = normalize_utf8_with_offsets_map(matrix, normalization_form="NFD")
    assert found.shape == maps.shape == (2, 1)


def test_malformed_bytes_remain_and_separate() -> None:
    assert normalized(b"e\xff\xcc\x81", "NFC") == b"e\xff\xcc\x81"


def test_characters_that_came_after_the_oldest_python() -> None:
    # a vowel sign of Gurung Khema, which is composed, and a mark of class 230
    assert normalized("\U0001611e\U0001611e", "NFC") == "\U00016121".encode()
    assert normalized("a\u0315\U00010d69", "NFD") == "a\U00010d69\u0315".encode()
    assert normalized("\U000105d2\u0307", "NFC") == "\U000105c9".encode()


def test_many_marks_take_linear_time() -> None:
    # unicodedata alone would take minutes
    marks = "\u0301\u0316" * 100_000
    assert (
        normalized("a" + marks, "NFD") == ("a" + "\u0316" * 100_000 + "\u0301" * 100_000).encode()
    )


def test_long_texts_are_normalized_in_parts() -> None:
    part = "e\u0301 한국어 ﬁ\n"
    long = part * (1 << 18)
    assert normalized(long, "NFKC") == unicodedata.normalize("NFKC", part).encode() * (1 << 18)
    assert case_fold_utf8(texts(long))[0] == "é 한국어 fi\n".encode() * (1 << 18)


def test_a_long_text_is_cancelled() -> None:
    set_running_task([CancelledError("the step has ended")])
    try:
        with pytest.raises(CancelledError):
            normalized("é" * (1 << 21), "NFD")
    finally:
        set_running_task(())


def test_offsets_in_a_replacement_are_the_end_of_its_source() -> None:
    assert sources("株Ａb", "NFKC") == [0, 1, 2, 3, 6, 7]
    assert sources("a½b", "NFKC") == [0, 1, 3, 3, 3, 3, 3, 4]
    assert sources("e\u0301", "NFC") == [0, 3, 3]
    assert sources("abc", "NFC") == [0, 1, 2, 3]
    assert sources(b"\xff\xc3", "NFD") == [0, 1, 2]


def test_offsets_outside_of_the_text() -> None:
    _, maps = normalize_utf8_with_offsets_map(texts("½"), normalization_form="NFKC")
    found = find_source_offsets(maps, np.array([-5, 100]), np.array([0, 2]))
    assert found.tolist() == [0, 2]


def test_rows_without_offsets_have_no_map() -> None:
    _, maps = normalize_utf8_with_offsets_map(texts("½", "é"), normalization_form="NFKD")
    rows = np.array([0, 1, 1, 3], np.int32)
    assert find_source_offsets(maps, np.array([1, 0, 2]), rows).tolist() == [2, 0, 2]


@pytest.mark.parametrize("splits", [[0, 1], [0, 1, 2, 3], [0, 9], [-1, 2]])
def test_splits_that_do_not_fit_the_maps(splits: list[int]) -> None:
    _, maps = normalize_utf8_with_offsets_map(texts("a", "b"), normalization_form="NFC")
    with pytest.raises(InvalidArgumentError):
        find_source_offsets(maps, np.arange(3), np.array(splits))


def test_other_variants_are_no_maps() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected an offset map, got int"):
        find_source_offsets(np.array([5], object), np.arange(1), np.array([0, 1]))
