"""No counter of a server falls when one of its processes ends, or does not answer."""

from __future__ import annotations

import concurrent.futures
import pathlib
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from server.processes.merged_metrics import WireFamily, families_to_wire, merged_families
from server.processes.seen_counts import SeenCounts

Said = Mapping[str, list[WireFamily]]


def counted(requests: int) -> list[WireFamily]:
    registry = CollectorRegistry()
    Counter("requests", "Requests", ["status"], registry=registry).labels("200").inc(requests)
    seconds = Histogram("seconds", "Time", buckets=(1,), registry=registry)
    for _ in range(requests):
        seconds.observe(0.5)
    Gauge("open", "Sessions", registry=registry).set(requests)
    return families_to_wire(registry.collect())


class Server:
    """Some processes, each of which may add up what all of them say."""

    def __init__(self, path: pathlib.Path | None) -> None:
        self._path = path
        self.over: set[str] = set()
        self.adding = self.process()

    def process(self) -> SeenCounts:
        return SeenCounts(self._path, self.over.__contains__)

    def sums(self, said: Said, adding: SeenCounts | None = None) -> tuple[float, float, float]:
        """Return the requests, the count of the histogram and the gauge in the sum of all."""
        missing = (adding or self.adding).missing(said)
        found = {
            sample.name: sample.value
            for family in merged_families([*said.values(), *missing])
            for sample in family.samples
        }
        return found["requests_total"], found["seconds_count"], found["open"]


@pytest.fixture(params=["file", "memory"])
def server(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Server:
    return Server(tmp_path / "counts.json" if request.param == "file" else None)


def test_counts_of_processes_that_have_ended_stay(server: Server) -> None:
    assert server.sums({"0.0": counted(5), "1.0": counted(3)}) == (8, 8, 8)
    server.over |= {"1.0"}
    assert server.sums({"0.0": counted(6)}) == (9, 9, 6)
    assert server.sums({"0.0": counted(6), "1.1": counted(1)}) == (10, 10, 7)
    server.over |= {"1.1"}
    assert server.sums({"0.0": counted(6), "1.2": counted(0)}) == (10, 10, 6)
    assert server.sums({"0.0": counted(6), "1.2": counted(2)}) == (12, 12, 8)


def test_a_process_that_does_not_answer_is_not_counted_twice(server: Server) -> None:
    assert server.sums({"0.0": counted(5), "1.0": counted(3)}) == (8, 8, 8)
    assert server.sums({"0.0": counted(5)}) == (8, 8, 5)
    assert server.sums({"0.0": counted(5), "1.0": counted(4)}) == (9, 9, 9)


def test_whichever_process_adds_up(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path / "counts.json")
    server.sums({"0.0": counted(5), "1.0": counted(3)})
    server.over |= {"0.0"}
    assert server.sums({"1.0": counted(3), "0.1": counted(1)}, server.process()) == (9, 9, 4)
    assert server.sums({"1.0": counted(3), "0.1": counted(1)}, server.process()) == (9, 9, 4)


def test_processes_that_add_up_at_the_same_time(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path / "counts.json")
    server.sums({"0.0": counted(5), "1.0": counted(3), "2.0": counted(2)})
    server.over |= {"2.0"}
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        said = {"0.0": counted(5), "1.0": counted(3)}
        made = [threads.submit(server.sums, said, server.process()) for _ in range(64)]
        assert {each.result() for each in made} == {(10, 10, 8)}


@pytest.mark.parametrize("text", ["", "{"])
def test_a_file_that_is_damaged(text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "counts.json"
    server = Server(path)
    server.sums({"0.0": counted(5), "1.0": counted(3)})
    path.write_text(text)
    server.over |= {"1.0"}
    assert server.sums({"0.0": counted(5)}) == (8, 8, 5)


def test_without_the_folder_one_process_remembers(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path / "none" / "counts.json")
    server.sums({"0.0": counted(5), "1.0": counted(3)})
    server.over |= {"1.0"}
    assert server.sums({"0.0": counted(5)}) == (8, 8, 5)
    assert not (tmp_path / "none").exists()


def test_nothing_is_kept_before_something_was_said(tmp_path: pathlib.Path) -> None:
    server = Server(None)
    assert server.adding.has_none
    server.sums({"0.0": counted(1)})
    assert not server.adding.has_none
    assert not Server(
        tmp_path / "counts.json"
    ).adding.has_none  # another process may have kept some
