"""`runstep deploy ray` says what is wrong with its arguments before it looks for a cluster."""

from __future__ import annotations

import pathlib
import sys

import pytest

from server.main import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--name", "a/b"], "--name must be 1 to 64 letters, digits, - and _, got 'a/b'"),
        (["--timeout", "0"], "--timeout must be positive, got 0"),
        (["--config", "none.yaml"], "Configuration file none.yaml does not exist"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["deploy", "ray", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_only_ray_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["deploy", "kubernetes"])
    assert "invalid choice: 'kubernetes'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--remove"]])
def test_without_ray(
    arguments: list[str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [*sys.modules]:
        if name.partition(".")[0] == "ray" or name.startswith("server.ray_"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    file = tmp_path / "server.yaml"
    file.write_text("{}\n")
    assert main(["deploy", "ray", "--config", str(file), *arguments]) == 1
    assert "pip install 'runstep[ray]' 'ray[serve]'" in capsys.readouterr().err
