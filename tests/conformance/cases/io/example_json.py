"""DecodeJSONExample: every kind of feature, optional parts, invalid input."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import from_numpy
from tests.conformance.case import Case, Graph, Step, case


def one_feature(body: str) -> str:
    """The JSON of an example whose only feature, `a`, is `body`."""
    return '{"features": {"feature": {"a": ' + body + "}}}"


EXAMPLES = [
    "{}",
    ' {"features": {}}\n',
    '{"features": null}',
    one_feature("{}"),
    one_feature('{"bytesList": {"value": ["aGk=", "aGk", "a-_b", ""]}}'),
    one_feature('{"int64List": {}}'),
]
# TensorFlow writes numbers unpacked, so the serialized forms differ: compare after parsing.
NUMBERS = [
    (np.float32, '{"floatList": {"value": [1, 2.5, -3e10, "NaN", "Infinity", "1.5"]}}'),
    (np.int64, '{"int64List": {"value": ["1", -2, 3.0, "9223372036854775807"]}}'),
    (np.int64, '{"int64_list": {"value": [1]}}'),
]
REFUSED = [
    "{]",
    "",
    "[]",
    "null",
    '{"x": 1}',
    "{} {}",
    '{"features": 1}',
    one_feature('{"int64List": {"value": ["x"]}}'),
    one_feature('{"int64List": {"value": [1.5]}}'),
    one_feature('{"int64List": {"value": [9223372036854775808]}}'),
    one_feature('{"bytesList": {"value": [1]}}'),
    one_feature('{"int64List": {}, "floatList": {}}'),
    '{"features": {"feature": {"a": {}, "a": {}}}}',
]


def decode(texts: Any) -> Case:
    return case("DecodeJSONExample", texts)


def read_again(number: int, dtype: Any, body: str) -> Case:
    """The numbers of one feature, decoded from JSON and parsed."""
    graph = Graph()
    (example,) = graph.add("DecodeJSONExample", one_feature(body))
    _, values, _ = graph.add(
        "ParseSingleExample",
        example,
        [],
        num_sparse=1,
        sparse_keys=["a"],
        dense_keys=[],
        sparse_types=[from_numpy(np.dtype(dtype))],
        Tdense=[],
        dense_shapes=[],
    )
    return Case(f"numbers_{number}", graph.graph_def, (Step({}, (values[0],)),), exact=True)


CASES = (
    *(decode(text) for text in EXAMPLES),
    *(read_again(index, *given) for index, given in enumerate(NUMBERS)),
    *(decode(["{}", text]) for text in REFUSED),
    decode([[text] for text in EXAMPLES]),
    decode(np.empty((3, 0), object)),
)
