"""The size of a batch follows what its rows cost."""

from __future__ import annotations

from collections.abc import Callable

from server.steps.batching.adaptive_size import LARGEST, AdaptiveSize


def after(seconds_per_row: Callable[[int], float], batches: int) -> tuple[int, list[int]]:
    """The limit after some batches that are as large as they may be, and the limits before."""
    size = AdaptiveSize()
    limits = []
    for number in range(batches):
        rows = 1 if number == 0 else size.limit
        size.add(rows, rows * seconds_per_row(rows))
        limits.append(size.limit)
    return size.limit, limits


def test_it_grows_while_a_row_gets_cheaper() -> None:
    assert after(lambda rows: 1 / rows, 40)[0] == LARGEST


def test_it_stays_where_a_row_is_cheapest() -> None:
    limit, limits = after(lambda rows: 1 / min(rows, 8) + (rows > 8), 300)
    assert limit in (8, 16)
    assert limits.count(8) > 0.8 * len(limits)


def test_it_stays_at_one_row_if_batches_are_slower_and_tries_again_ever_less() -> None:
    _, limits = after(lambda rows: 1 + rows, 3000)
    tries = [number for number, limit in enumerate(limits) if limit > 1]
    assert 3 <= len(tries) < 50


def test_one_quick_batch_proves_nothing() -> None:
    size = AdaptiveSize()
    size.add(1, 1.0)
    size.add(2, 0.1)
    assert size.limit == 2
    for _ in range(3):
        size.add(2, 3.0)
    assert size.limit == 1


def test_it_shrinks_if_small_batches_become_cheaper() -> None:
    size = AdaptiveSize()
    size.add(1, 1.0)
    for _ in range(4):
        size.add(2, 1.0)
    assert size.limit == 4
    for _ in range(50):
        size.add(1, 0.1)
        size.add(2, 1.0)
    assert size.limit == 1


def test_a_request_larger_than_a_batch_tells_nothing() -> None:
    size = AdaptiveSize()
    size.add(1000, 0.0)
    assert size.limit == 2
