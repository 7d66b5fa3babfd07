import itertools

import numpy as np
import pytest

from server.commands.load.latencies import Latencies


def of(values):
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    return latencies


@pytest.mark.parametrize("seed", [1, 2])
def test_percentiles_are_right_to_one_per_cent(seed):
    values = np.sort(np.random.default_rng(seed).lognormal(-6, 2, 5000))
    latencies = of(values)
    for percent in (1, 50, 90, 99, 99.9):
        exact = values[int(np.ceil(5000 * percent / 100)) - 1]
        assert latencies.percentile(percent) == pytest.approx(exact, rel=0.0101)
    assert latencies.percentile(100) == values[-1] == latencies.longest


def test_without_any_there_is_none():
    latencies = Latencies()
    assert latencies.percentile(50) == 0 and list(latencies.ranges(5)) == []


def test_merged_they_are_those_of_both():
    merged, both = of([0.001, 5]), of([0.001, 5, 0.02, 0.3])
    merged.merge(of([0.02, 0.3]))
    assert vars(merged) == vars(both)


@pytest.mark.parametrize("values", [[0.01], [0.0, 1e9], [1e-7, 1e-3, 1e-3, 2.0]])
def test_ranges_hold_all(values):
    ranges = list(of(values).ranges(7))
    assert 1 <= len(ranges) <= 7
    assert sum(count for _, _, count in ranges) == len(values)
    assert all(end > begin for begin, end, _ in ranges)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))
