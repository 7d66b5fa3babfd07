"""Reading JSON bodies: bare tokens, faults, unknown keys, and the collector's pause."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from runtime.foundation.errors import InvalidArgumentError
from server.codec.json_body import load_json, parse_json, parse_object
from server.codec.json_parts import LARGE_BODY_BYTES
from server.codec.serving.requests import parse_document
from server.steps.step_runner import OFF_LOOP_BYTES

SECONDS = 10  # to wait for another thread
LARGE = b'{"instances": [1.5]' + b" " * LARGE_BODY_BYTES + b"}"
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


def test_a_large_body_is_one_that_is_parsed_on_another_thread():
    assert LARGE_BODY_BYTES == OFF_LOOP_BYTES


@pytest.fixture(params=[True, False])
def collector_enabled(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the program has the collector enabled; it is enabled again after the test."""
    if not request.param:
        gc.disable()
    yield request.param
    gc.enable()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the collector was enabled in each call of `orjson.loads`."""
    calls: list[bool] = []
    loads = orjson.loads

    def observed(body: bytes) -> Any:
        calls.append(gc.isenabled())
        return loads(body)

    monkeypatch.setattr(orjson, "loads", observed)
    return calls


@pytest.mark.parametrize("parse", [parse_json, lambda body: parse_document(body).members])
def test_the_collector_is_off_while_a_large_body_is_parsed(collector_enabled, seen, parse):
    assert parse(LARGE) == {"instances": [1.5]}
    assert set(seen) == {False}
    seen.clear()
    assert gc.isenabled() == collector_enabled
    assert parse(b'{"instances": [1.5]}') == {"instances": [1.5]}
    assert seen == [collector_enabled]


@pytest.mark.usefixtures("seen")
def test_the_collector_is_on_again_after_a_fault(collector_enabled):
    with pytest.raises(InvalidArgumentError, match="The body is not valid JSON: "):
        parse_json(LARGE + b"{")
    assert gc.isenabled() == collector_enabled


def test_the_collector_stays_off_until_the_last_of_two_parses_ends(collector_enabled, monkeypatch):
    entered, leave = threading.Event(), threading.Event()
    loads = orjson.loads

    def slow(body: bytes) -> Any:
        entered.set()
        assert leave.wait(SECONDS)
        return loads(body)

    monkeypatch.setattr(orjson, "loads", slow)
    first = threading.Thread(target=load_json, args=(LARGE,))
    first.start()
    try:
        assert entered.wait(SECONDS)
        monkeypatch.setattr(orjson, "loads", loads)
        assert load_json(LARGE) == {"instances": [1.5]}
        assert not gc.isenabled()
        with pytest.raises(orjson.JSONDecodeError):
            load_json(LARGE + b"{")
        assert not gc.isenabled()
    finally:
        leave.set()
        first.join(SECONDS)
    assert gc.isenabled() == collector_enabled
