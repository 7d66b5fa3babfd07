"""The threads of the flags and of the session config file; settings with which nothing starts."""

from __future__ import annotations

import argparse
import pathlib

import pytest

from runtime.errors import InvalidArgumentError
from server.commands.flag_arguments import add_flags
from server.commands.flag_values import FlagValues
from server.commands.serve import start, with_threads
from server.settings import Settings, settings_sources


@pytest.mark.parametrize(
    ("flags", "threads"),
    [
        ((), (3, 2)),
        (("--tensorflow_inter_op_parallelism=5",), (5, 2)),
        (("--tensorflow_session_parallelism=4",), (4, 4)),
    ],
)
def test_flags_win_over_the_session_config_file(
    flags: tuple[str, ...], threads: tuple[int, int], tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "session.config"
    file.write_text("inter_op_parallelism_threads: 3 intra_op_parallelism_threads: 2")
    parser = argparse.ArgumentParser()
    add_flags(parser)
    given = FlagValues(parser.parse_args(flags))
    online = with_threads(Settings(session_config_file=str(file)), given).thread_pools[0]
    assert (online.num_threads, online.intra_op_threads) == threads


@pytest.mark.parametrize("processes", [1, 2])
def test_a_server_without_a_port_does_not_start(processes: int) -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    settings = Settings(rest={"port": 0}, grpc={"port": 0}, processes=processes)
    with pytest.raises(InvalidArgumentError, match="Nobody could reach the server: "):
        start(settings, FlagValues(parser.parse_args([])), settings_sources(None))
