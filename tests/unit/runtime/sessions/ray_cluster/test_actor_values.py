"""Tensors and answers on their way to an actor and back."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import protos as pb
from runtime.api import InternalError, InvalidArgumentError, NotFoundError, UnimplementedError
from runtime.sessions.ray_cluster.actor_values import (
    answer_of,
    content_of,
    from_sent,
    refusal,
    to_sent,
    values_of,
)


@pytest.mark.parametrize(
    "value",
    [
        np.float32(1.5),
        np.arange(6, dtype=np.int64).reshape(2, 3)[:, ::2],
        np.ones((2, 0), np.complex64),
        np.array([1, 2], ml_dtypes.bfloat16),
        np.array([True, False]),
    ],
)
def test_numbers_cross_as_arrays(value: Any) -> None:
    sent = pickle.loads(pickle.dumps(to_sent(value), 5))
    received = from_sent(sent)
    assert received.dtype == value.dtype
    np.testing.assert_array_equal(received, value)


def test_a_large_array_is_sent_as_it_is() -> None:
    array = np.zeros(1000)
    assert to_sent(array) is array


def test_a_subclass_is_sent_as_a_plain_array() -> None:
    assert type(to_sent(np.arange(4).view(np.recarray))) is np.ndarray


@pytest.mark.parametrize(
    "value",
    [
        np.array([[b"a", b"\xff"]], object),
        np.array("é", object),
        np.array([b"ab", b"c"]),
        np.array(["ab", "c"]),
        np.str_("ab"),
        np.bytes_(b"ab"),
    ],
)
def test_strings_cross_as_messages(value: Any) -> None:
    sent = to_sent(value)
    assert isinstance(sent, bytes)
    expected = [each.encode() if isinstance(each, str) else each for each in np.ravel(value)]
    assert list(np.ravel(from_sent(sent))) == expected


def test_other_objects_do_not_cross() -> None:
    with pytest.raises(UnimplementedError, match="A dict has no value on the wire"):
        to_sent({})
    with pytest.raises(InvalidArgumentError, match="A string element must be bytes or str"):
        to_sent(np.array([print], object))


def test_answers() -> None:
    metadata = pb.RunMetadata()
    metadata.partition_graphs.add()
    reported = pb.RunMetadata()
    assert values_of(answer_of([np.float32(2)], metadata), reported) == [2]
    assert len(reported.partition_graphs) == 1
    assert content_of((0, None)) is None


def test_errors_keep_their_code_and_text() -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        content_of(refusal(NotFoundError("nowhere", "n")))
    with pytest.raises(InternalError, match="KeyError: 'x'"):
        content_of(refusal(KeyError("x")))
    with pytest.raises(InternalError, match="A host actor answered with a NoneType"):
        content_of(None)  # type: ignore[arg-type]
