"""The ids of sessions say where they are."""

from __future__ import annotations

import pytest

from server.processes.session_ids import Place, place_of, suffix_of
from server.sessions.registry import new_session_id


@pytest.mark.parametrize("place", [Place(0, 0), Place(63, 123456)])
def test_an_id_has_its_place(place: Place) -> None:
    for _ in range(200):  # the random part may have "-" anywhere
        assert place_of(new_session_id(suffix_of(place))) == place


def test_other_ids_have_none() -> None:
    for _ in range(200):
        assert place_of(new_session_id()) is None
    for other in ("", "-1-2", "A" * 21 + "-1-2", "A" * 22 + "-1-", "A" * 22 + "-1-2-3x"):
        assert place_of(other) is None
