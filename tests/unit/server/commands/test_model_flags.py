"""TensorFlow Serving's flags about models, as settings."""

from __future__ import annotations

from typing import Any

import pytest

from server.commands.serve import flag_settings
from server.main import _parser


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
