from __future__ import annotations

import itertools
import logging
import threading
from pathlib import Path

import pytest

from server.host import KeptConfig
from server.models.manager import ModelManager
from server.models.model_config import ModelConfig
from server.models.model_config_file import ModelConfigFile
from server.models.poller import ModelPoller
from tests.unit.server.models.fakes import FakeLoader, HandPool, make_versions


def config_text(*bases: Path) -> str:
    entries = (
        f"config {{ name: '{base.name}' base_path: '{base}' model_platform: 'tensorflow' }}"
        for base in bases
    )
    return f"model_config_list {{ {' '.join(entries)} }}"


def test_the_first_poll_happens_at_once(tmp_path: Path) -> None:
    class InlinePool(HandPool):
        def schedule(self, task: object) -> None:
            task()  # type: ignore[operator]

    base = str(make_versions(tmp_path, 1))
    manager = ModelManager([ModelConfig("m", base)], FakeLoader(), InlinePool())
    poller = ModelPoller(manager, 0)
    poller.start()
    assert manager.wait_until_settled(10)
    poller.stop()
    assert manager.find("m").version == 1


def test_a_poll_that_raises_is_one_line_with_its_trace_and_then_a_count(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    manager = ModelManager([], FakeLoader(), HandPool())
    polls = itertools.count(1)
    ended = threading.Event()

    def poll() -> None:
        number = next(polls)
        if number == 13:
            ended.set()
        if number <= 11:
            raise RuntimeError("no folder today")

    monkeypatch.setattr(manager, "poll", poll)
    poller = ModelPoller(manager, 1e-3)
    with caplog.at_level(logging.INFO):
        poller.start()
        assert ended.wait(10)
        poller.stop()
    failure = "Polling the models failed: RuntimeError: no folder today"
    assert [(each.getMessage(), each.exc_info is not None) for each in caplog.records] == [
        (failure, True),
        (f"{failure} (10 times)", False),
        (f"Over after 11 times: {failure}", False),
    ]


def test_the_config_file_is_declarative(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pool = HandPool()
    manager = ModelManager([], FakeLoader(), pool)
    path = tmp_path / "models.config"
    poller = ModelPoller(manager, -1, ModelConfigFile(path, KeptConfig()), 60)
    first = make_versions(tmp_path / "first", 1)
    second = make_versions(tmp_path / "second", 1)

    path.write_text(config_text(first, second))
    poller.reload_config_file()
    pool.run_all()
    assert manager.model_names() == ["first", "second"]

    path.write_text(config_text(second))
    poller.reload_config_file()
    pool.run_all()
    assert manager.model_names() == ["second"]

    path.write_text("model_config_list {")
    with caplog.at_level(logging.ERROR):
        poller.reload_config_file()
    assert "Kept the models as they were: Invalid protobuf file" in caplog.text
    assert manager.model_names() == ["second"]
