"""Every number in the settings has a largest one, which is not infinite."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from runtime.errors import InvalidArgumentError
from server.settings import Settings, load_settings
from server.settings_sections.numbers import (
    MAX_BYTES,
    MAX_COUNT,
    MAX_SECONDS,
    MAX_THREADS,
    MAX_VERSION,
)

# What an entry of a list or a map must have beside the key in question.
_REQUIRED: Mapping[str, dict[str, Any]] = {
    "models": {"name": "m", "base_path": "/m"},
    "models.request_log": {"filename_prefix": "f"},
    "thread_pools": {"name": "online"},
    "priorities": {"pool": "online"},
    "ray.serve.replicas": {"max": 2},
    "ray.serve.models.replicas": {"max": 2},
}


def numbers_in(kind: Any, key: str, make: Any) -> Iterator[tuple[str, Any]]:
    """The keys of numbers in a type, and what makes the settings that have a value there."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (int, float):
        yield key, make
    elif origin is Annotated:
        yield from numbers_in(arguments[0], key, make)
    elif origin in (Union, types.UnionType):
        for each in arguments:
            yield from numbers_in(each, key, make)
    elif isinstance(origin, type) and issubclass(origin, tuple):
        yield from numbers_in(arguments[0], key, lambda value: make([value]))
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from numbers_in(arguments[1], key, lambda value: make({"normal": value}))
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            yield from numbers_in(
                field.annotation,
                f"{key}.{name}".lstrip("."),
                lambda value, name=name: make({**_REQUIRED.get(key, {}), name: value}),
            )


NUMBERS = dict(numbers_in(Settings, "", lambda value: value))


def test_the_numbers_are_found() -> None:
    assert len(NUMBERS) > 60
    assert {"rest.drain_seconds", "thread_pools.num_threads", "models.version_labels"} <= {*NUMBERS}


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 1e300, 10**30])
@pytest.mark.parametrize("key", NUMBERS)
def test_no_number_is_boundless(key: str, value: float) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        load_settings(None, NUMBERS[key](value), environment={})
    lines = str(caught.value).splitlines()[1:]
    last = key.rpartition(".")[2]
    assert any(last in line and repr(value)[:5] in line for line in lines), lines


@pytest.mark.parametrize(
    ("key", "largest"),
    [
        ("rest.drain_seconds", MAX_SECONDS),
        ("sessions.max_step_seconds", MAX_SECONDS),
        ("rest.timeout_ms", MAX_SECONDS * 1000),
        ("rest.max_body_bytes", MAX_BYTES),
        ("grpc.max_message_bytes", MAX_COUNT),
        ("grpc.channel_arguments", MAX_COUNT),
        ("priorities.queue_size", MAX_COUNT),
        ("ray.serve.replicas", MAX_COUNT),
        ("models.version_labels", MAX_VERSION),
        ("model_loading.num_threads", MAX_THREADS),
        ("models.request_log.sampling_rate", 1),
    ],
)
def test_the_largest_number(key: str, largest: int) -> None:
    load_settings(None, NUMBERS[key](largest), environment={})
    with pytest.raises(InvalidArgumentError, match=f"{key.rpartition('.')[2]}.*{largest}"):
        load_settings(None, NUMBERS[key](largest + 1), environment={})
