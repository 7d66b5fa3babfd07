"""Errors of RestoreV2: a missing checkpoint, a missing tensor, a tensor of another type."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.api import DataType, InvalidArgumentError, NotFoundError, OpError
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from tests.conformance.case import Graph
from tests.saved_model_corpus import FIXTURES
from tests.unit.runtime.sessions.graphs import direct_session

PLAIN = FIXTURES.parent / "checkpoints" / "plain"


def restore(prefix: str, name: str, dtype: DataType) -> None:
    graph = Graph()
    inputs = [np.array(text, object) for text in (prefix.encode(), [name.encode()], [b""])]
    graph.add("RestoreV2", *inputs, name="restore", dtypes=[dtype])
    direct_session(graph.graph_def).run({}, ["restore:0"])


with TensorBundleReader(str(PLAIN), AllowAll()) as _reader:
    STORED = {name: _reader.entry(name).dtype for name in _reader.names}
FLOATS = next(name for name, dtype in STORED.items() if dtype is DataType.FLOAT)

EXPECTED: list[tuple[str, str, DataType, type[OpError], str]] = [
    (str(PLAIN), FLOATS, DataType.INT32, InvalidArgumentError,
     f"tensor_name = {FLOATS}; expected dtype int32 does not equal original dtype float"),
    (str(PLAIN), "nokey", DataType.FLOAT, NotFoundError, "Key nokey not found in checkpoint"),
    ("/nope/x", "a", DataType.FLOAT, NotFoundError,
     "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for /nope/x"),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "name", "dtype", "error", "text"), EXPECTED)
def test_what_is_not_there(
    prefix: str, name: str, dtype: DataType, error: type[OpError], text: str
) -> None:
    with pytest.raises(error) as caught:
        restore(prefix, name, dtype)
    assert caught.value.message.startswith(text)
