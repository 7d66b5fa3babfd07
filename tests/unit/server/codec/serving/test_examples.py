"""Classify and regress requests as data; the ids are the conformance list's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from server.codec.serving.examples import examples_tensor
from server.codec.serving.requests import (
    parse_document,
)

# Examples.


def examples(body: str) -> list[dict[str, list[Any]]]:
    """The features of each example that a body makes."""
    tensor = examples_tensor(parse_document(body.encode()))
    parsed = [pb.Example.FromString(item) for item in tensor]
    return [
        {
            name: list(getattr(feature, feature.WhichOneof("kind")).value)
            for name, feature in example.features.feature.items()
        }
        for example in parsed
    ]


def test_examples() -> None:  # 67
    assert examples(
        '{"examples":[{"names":["foo","bar"],"ratings":[8.0,9.0],"age":20},'
        '{"names":["baz"],"ratings":6.0}]}'
    ) == [
        {"names": [b"foo", b"bar"], "ratings": [8.0, 9.0], "age": [20]},
        {"names": [b"baz"], "ratings": [6.0]},
    ]


def test_examples_with_context() -> None:  # 68
    (features,) = examples(
        '{"context":{"query":{"b64":"aGVsbG8="}},"examples":[{"f":[NaN,Infinity,-Infinity],'
        '"flags":[1,true,false]}]}'
    )
    assert features["query"] == [b"hello"]
    assert features["flags"] == [1, 1, 0]
    assert np.isnan(features["f"][0])
    assert features["f"][1:] == [math.inf, -math.inf]


BAD_EXAMPLES = [
    ("69", '{"context":[1],"examples":[{}]}', "Example must be JSON object but got JSON Array"),
    ("70", '{"examples":{}}', "Expecting 'examples' value to be an list/array"),
    ("71", '{"examples":[[{"a":1}]]}', "Example must be JSON object but got JSON Array"),
    (
        "72",
        '{"examples":[{"names":[10,null]}]}',
        "Feature: names has element with unexpected JSON type: Null",
    ),
    (
        "73",
        '{"examples":[{"names":[10,10.0]}]}',
        "Unexpected element type in feature: names expecting type: int64",
    ),
    (
        "74",
        '{"examples":[{"names":[10,{"test":10}]}]}',
        "Feature: names has element with unexpected JSON type: Object",
    ),
    (
        "75",
        '{"examples":[{"names":[[10],20]}]}',
        "Feature: names has element with unexpected JSON type: Array",
    ),
    (
        "76",
        '{"examples":[{"names":[20,18446744073709551603]}]}',
        "Feature: names has uint64_t element. Only int64_t is supported.",
    ),
    ("no-examples", '{"x":1}', "key 'examples' is expected and was not found"),
    ("empty", '{"examples":[]}', "'examples' value is an empty array"),
]


@pytest.mark.parametrize(
    ("body", "text"), [c[1:] for c in BAD_EXAMPLES], ids=[c[0] for c in BAD_EXAMPLES]
)
def test_bad_examples(body: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        examples(body)
    assert text in raised.value.message


def test_the_name_of_a_feature_must_be_utf_8() -> None:
    with pytest.raises(InvalidArgumentError, match="name of a feature is not UTF-8"):
        examples_tensor(parse_document(b'{"examples":[{"a\x8e":1}]}'))


@pytest.mark.parametrize("key", ["instances", "inputs"])
def test_long_lists_of_numbers_are_shown_as_they_were_sent(key: str) -> None:
    body = f'{{"{key}":[{"1.5," * 100_000}NaN]}}'
    with pytest.raises(InvalidArgumentError) as raised:
        examples(body)
    assert raised.value.message.startswith(f'JSON Value: {{\n    "{key}": [1.5, 1.5, 1.5, ')
