"""The factory of ray:// sessions, which a program without Ray has too."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runtime.api import FailedPreconditionError, SessionOptions, new_session
from runtime.registrations import session_factories
from runtime.sessions.ray_cluster.ray_session_factory import RaySessionFactory


def test_the_factory_takes_its_scheme() -> None:
    for target in ("ray://auto", "ray://10.0.0.5:6379?num_cpus=1"):
        assert isinstance(
            session_factories().get_factory(SessionOptions(target)), RaySessionFactory
        )
    assert not RaySessionFactory().accepts_options(SessionOptions("grpc://ray:8500"))


def test_a_program_without_ray_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("runtime.sessions.ray_cluster.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        FailedPreconditionError,
        match=r"ray:// targets require the extra `ray`: pip install 'runstep\[ray\]'",
    ):
        new_session(SessionOptions("ray://auto"))


def test_the_runtime_does_not_import_ray() -> None:
    script = (
        "import sys, runtime.api; runtime.api.new_session(runtime.api.SessionOptions()).close()"
    )
    script += "; print('ray' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
