"""TensorFlow Serving's flags as settings."""

from __future__ import annotations

from typing import Any

import pytest

from server.commands.serve import flag_settings
from server.main import _parser


def test_flags_of_tensorflow_serving_become_settings() -> None:
    options = _parser().parse_args(
        ["serve", "--port=1", "--rest_api_port=2", "--rest_api_timeout_in_ms=3",
         "--model_name=m", "--model_base_path=/m", "--file_system_poll_wait_seconds=0"]
    )  # fmt: skip
    assert flag_settings(options) == {
        "grpc": {"port": 1},
        "rest": {"port": 2, "timeout_ms": 3},
        "models": [{"name": "m", "base_path": "/m"}],
        "model_poll_seconds": 0,
    }


def test_flags_that_are_not_given_leave_the_settings_alone() -> None:
    assert flag_settings(_parser().parse_args(["serve"])) == {}


@pytest.mark.parametrize(
    ("flag", "settings"),
    [
        ("--rest_api_enable_cors_support=true", {"rest": {"cors": True}}),
        ("--max_num_load_retries=0", {"model_loading": {"max_retries": 0}}),
        ("--load_retry_interval_micros=1500000", {"model_loading": {"retry_seconds": 1.5}}),
        ("--enable_model_warmup=False", {"model_loading": {"warmup": False}}),
        (
            "--allow_version_labels_for_unavailable_models=1",
            {"model_loading": {"allow_labels_for_unavailable": True}},
        ),
    ],
)
def test_flags(flag: str, settings: dict[str, Any]) -> None:
    assert flag_settings(_parser().parse_args(["serve", flag])) == settings


def test_a_flag_that_is_neither_true_nor_false(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args(["serve", "--enable_model_warmup=maybe"])
    assert "expected true or false, got 'maybe'" in capsys.readouterr().err
