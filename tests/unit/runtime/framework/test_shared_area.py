"""Memory that two processes share, both sides of it in this one."""

import os

import ml_dtypes
import numpy as np
import pytest

from runtime.sessions.child_process import shared_area
from runtime.sessions.child_process.shared_area import SharedArea


@pytest.fixture
def sides():
    ours = SharedArea.create()
    theirs = SharedArea(os.dup(ours.fd))
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.complex128, ml_dtypes.bfloat16])
def test_what_one_puts_the_other_sees(sides, dtype):
    ours, theirs = sides
    arrays = [np.arange(n).astype(dtype).reshape(1, n) for n in (3, 1000, 100_000)]
    places = [ours.put(array) for array in arrays]
    assert len(set(places)) == 3 and not any(place % 64 for place in places)
    for place, array in zip(places, arrays, strict=True):
        seen = theirs.look(place, list(array.shape), array.dtype)
        assert seen.dtype == array.dtype
        np.testing.assert_array_equal(seen, array)
        with pytest.raises(ValueError, match="read-only"):
            seen[...] = 0


def test_the_next_message_begins_at_the_beginning(sides):
    ours, theirs = sides
    first = ours.put(np.arange(1000))
    ours.begin()
    assert ours.put(np.arange(1000) * 2) == first
    np.testing.assert_array_equal(theirs.look(first, [1000], np.dtype(np.int64))[:3], [0, 2, 4])


def test_an_array_that_somebody_still_has_outlives_a_larger_map(sides):
    ours, theirs = sides
    place = ours.put(np.arange(1000))
    seen = theirs.look(place, [1000], np.dtype(np.int64))
    assert ours.put(np.ones(1_000_000)) is not None
    theirs.look(8192, [1_000_000], np.dtype(np.float64))
    assert seen.sum() == 999 * 500


def test_what_does_not_fit_is_refused_and_nothing_shrinks(sides, monkeypatch):
    ours, theirs = sides
    monkeypatch.setattr(shared_area, "_MOST_BYTES", 1 << 15)
    assert ours.put(np.zeros(1 << 15, np.uint8)) == 0
    assert ours.put(np.zeros(1, np.uint8)) is None
    with pytest.raises(OSError, match="Operation not permitted"):
        os.ftruncate(theirs.fd, 0)


def test_without_a_file_nothing_fits(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    area = SharedArea.create()
    assert area.fd == -1
    assert area.put(np.zeros(10)) is None
    area.close()
