"""Ids of sessions name their session host."""

from __future__ import annotations

import pytest

from server.ray_sessions.host_ids import (
    host_name,
    host_of,
    host_prefix,
    new_host_id,
    suffix_of,
    timeout_of,
)
from server.sessions.registry import new_session_id


def test_an_id_names_its_host() -> None:
    host_id = new_host_id()
    assert host_of(new_session_id(suffix_of(host_id))) == host_id
    assert timeout_of(new_session_id(suffix_of(host_id))) == 0
    assert host_name("shop", host_id) == f"{host_prefix('shop')}{host_id}"


@pytest.mark.parametrize("milliseconds", [1, 500, (1 << 63) - 1])
def test_an_id_has_the_timeout_of_its_session(milliseconds: int) -> None:
    session_id = new_session_id(suffix_of("0123456789ab", milliseconds))
    assert host_of(session_id) == "0123456789ab"
    assert timeout_of(session_id) == milliseconds


def test_the_random_part_is_no_timeout() -> None:
    session_id = "a" * 19 + "-t5" + suffix_of("0123456789ab")
    assert (host_of(session_id), timeout_of(session_id)) == ("0123456789ab", 0)


@pytest.mark.parametrize("random_part", [True, False])
@pytest.mark.parametrize("end", ["", "-0-1", "-rxyz", "-r0123456789ab-", "-t5", "-t-r0123456789ab"])
def test_other_ids_name_none(random_part: bool, end: str) -> None:
    session_id = (new_session_id() if random_part else "") + end
    assert (host_of(session_id), timeout_of(session_id)) == (None, 0)


def test_a_suffix_alone_names_none() -> None:
    assert host_of("-r0123456789ab") is None
