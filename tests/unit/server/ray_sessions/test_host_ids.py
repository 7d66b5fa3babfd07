"""Ids of sessions name their session host."""

from __future__ import annotations

import pytest

from server.ray_sessions.host_ids import host_name, host_of, host_prefix, new_host_id, suffix_of
from server.sessions.registry import new_session_id


def test_an_id_names_its_host() -> None:
    host_id = new_host_id()
    assert host_of(new_session_id(suffix_of(host_id))) == host_id
    assert host_name("shop", host_id) == f"{host_prefix('shop')}{host_id}"


@pytest.mark.parametrize("random_part", [True, False])
@pytest.mark.parametrize("end", ["", "-0-1", "-rxyz", "-r0123456789ab-"])
def test_other_ids_name_none(random_part: bool, end: str) -> None:
    assert host_of((new_session_id() if random_part else "") + end) is None


def test_a_suffix_alone_names_none() -> None:
    assert host_of("-r0123456789ab") is None
