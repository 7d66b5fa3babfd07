"""The size of a batch follows what its rows cost."""

from __future__ import annotations

import random
from collections.abc import Callable

from server.steps.batching.adaptive_size import LARGEST, TRIES, AdaptiveSize


def after(seconds_per_row: Callable[[int], float], batches: int) -> tuple[int, list[int]]:
    """The limit after some batches that are as large as they may be, and the limits before."""
    size = AdaptiveSize()
    limits = []
    for _ in range(batches):
        rows = size.limit
        size.add(rows, rows * seconds_per_row(rows))
        limits.append(size.limit)
    return size.limit, limits


def test_it_grows_while_a_row_gets_cheaper() -> None:
    limit, limits = after(lambda rows: 1 / rows, 60)
    assert limit == LARGEST
    # Pairs, then single rows to compare them with, and from then on twice as many each time.
    assert limits[: 2 * TRIES] == [2] * (TRIES - 1) + [1] * TRIES + [4]


def test_it_stays_where_a_row_is_cheapest() -> None:
    limit, limits = after(lambda rows: 1 / min(rows, 8) + (rows > 8), 1000)
    assert limit in (8, 16)
    assert limits.count(8) > 0.8 * len(limits)


def test_it_stays_at_one_row_if_batches_are_slower_and_tries_again_ever_less() -> None:
    _, limits = after(lambda rows: 1 + rows, 3000)
    tries = [number for number, limit in enumerate(limits) if limit > 1]
    assert 3 * TRIES <= len(tries) < 10 * TRIES


def test_other_work_on_the_machine_does_not_hide_what_is_cheaper() -> None:
    """Most steps take several times as long as on a quiet machine."""
    noise = random.Random(7)

    def slowed(seconds: float) -> float:
        return seconds * noise.choice([1, 2, 4, 6])

    _, limits = after(lambda rows: slowed(1.0), 3000)
    assert limits.count(1) > 0.8 * len(limits)
    _, limits = after(lambda rows: slowed(1 / min(rows, 8)), 3000)
    assert limits.count(8) > 0.8 * len(limits)


def test_one_quick_batch_proves_nothing() -> None:
    size = AdaptiveSize()
    for _ in range(TRIES):
        size.add(1, 1.0)
    size.add(2, 0.1)
    assert size.limit == 2


def test_it_shrinks_if_small_batches_become_cheaper() -> None:
    size = AdaptiveSize()
    for rows in (1, 2):
        for _ in range(TRIES):
            size.add(rows, 1.0)
    assert size.limit == 4
    size.add(1, 0.1)
    assert size.limit == 1
    assert size.is_one


def test_a_request_larger_than_a_batch_tells_nothing() -> None:
    size = AdaptiveSize()
    for _ in range(2 * TRIES):
        size.add(1000, 0.0)
    assert size.limit == 2
