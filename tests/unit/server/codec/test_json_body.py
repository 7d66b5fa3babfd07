import pytest

from runtime.foundation.errors import InvalidArgumentError
from server.codec.json_body import parse_json, parse_object

NAN, INF = float("nan"), float("inf")


def test_parse_reads_bare_tokens_and_empty_bodies():
    assert parse_json(b"  ") == {}
    assert parse_json(b'{"x": [Infinity, -Infinity]}') == {"x": [INF, -INF]}


@pytest.mark.parametrize("body", [b"{", b"NaN]", b"\xff", b"[" * 100_000, b"[NaN," * 100_000])
def test_parse_refuses_what_is_not_json(body):
    with pytest.raises(InvalidArgumentError, match="The body is not valid JSON: "):
        parse_json(body)


def test_unknown_keys_are_named():
    with pytest.raises(InvalidArgumentError, match="Unknown keys: b, c; known keys are a"):
        parse_object(b'{"a": 1, "c": 1, "b": 1}', frozenset({"a"}))
    with pytest.raises(InvalidArgumentError, match="must be a JSON object, got a list"):
        parse_object(b"[]", frozenset({"a"}))
