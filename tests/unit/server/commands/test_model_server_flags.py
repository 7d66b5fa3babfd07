"""The table of TensorFlow Serving's flags."""

from __future__ import annotations

import pathlib

import yaml

from server.commands.model_server_flags import FLAGS
from server.settings import Settings
from tools.write.migration import MARKS, table

ROOT = pathlib.Path(__file__).parents[4]


def test_each_flag_is_there_once() -> None:
    names = [flag.name for flag in FLAGS]
    assert len(names) == len(set(names)) == 48


def test_an_honoured_flag_names_a_setting_that_exists_and_its_comment_names_the_flag() -> None:
    stated = Settings().model_dump()
    text = (ROOT / "configs" / "server.yaml").read_text()
    assert yaml.safe_load(text)
    for flag in FLAGS:
        if flag.name == "version":
            continue
        assert bool(flag.setting) == (flag.treatment == "honoured"), flag
        if flag.setting:
            value = stated
            for key in flag.setting.split("."):
                assert key in value, flag
                value = value[key]
            assert f"--{flag.name}" in text or flag.setting == "thread_pools", flag


def test_a_reason_reads_on_after_because() -> None:
    for flag in FLAGS:
        assert flag.note and not flag.note.endswith("."), flag
        assert len(flag.note.split()) >= 2, flag


def test_the_table_of_the_migration_guide_is_that_of_the_flags() -> None:
    text = (ROOT / "docs" / "migration.md").read_text()
    begin, end = MARKS
    assert text.split(begin)[1].split(end)[0] == f"\n{table()}", (
        "run: python -m tools.write.migration"
    )
