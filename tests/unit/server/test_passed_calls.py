"""Bodies as one process passes them to another."""

from __future__ import annotations

import pickle

import pytest

from server.passed_calls import passed_body, received_body


@pytest.mark.parametrize("size", [0, 10, 1 << 16, 1 << 20])
@pytest.mark.parametrize("kind", [bytes, memoryview])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_body_arrives_as_bytes(size: int, kind: type[bytes | memoryview], parts: int) -> None:
    text = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    half = size // parts
    given = [kind(each) for each in ([text] if parts == 1 else [text[:half], text[half:]])]
    assert received_body(pickle.loads(pickle.dumps(passed_body(given)))) == text
