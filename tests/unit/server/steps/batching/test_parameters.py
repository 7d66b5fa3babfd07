"""TensorFlow Serving's parameters: its defaults, its text form and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.api import schedulable_cores
from runtime.errors import InvalidArgumentError, NotFoundError
from server.steps.batching.parameters import BatchParameters, read_parameters

EVERY_FIELD = """
max_batch_size { value: 64 }
batch_timeout_micros { value: 500 }
max_enqueued_batches { value: 7 }
num_batch_threads { value: 3 }
thread_pool_name { value: "batches" }
allowed_batch_sizes: 2
allowed_batch_sizes: 16
pad_variable_length_inputs: true
enable_large_batch_splitting { value: true }
max_execution_batch_size { value: 16 }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "batching.txt"
    path.write_text(text)
    return path


def test_every_field_of_the_text_form_is_read(tmp_path: Path) -> None:
    assert read_parameters(written(tmp_path, EVERY_FIELD)) == BatchParameters(
        64, 500, 7, 3, "batches", (2, 16), True, True, 16
    )


def test_an_empty_file_has_the_defaults(tmp_path: Path) -> None:
    found = read_parameters(written(tmp_path, ""))
    assert found == BatchParameters(1000, 0, 10, schedulable_cores(), "model_server_batch_threads")
    assert (found.execution_size, found.padded_size(7)) == (1000, 7)


def test_a_batch_is_padded_to_the_next_allowed_size() -> None:
    parameters = BatchParameters(8, allowed_batch_sizes=(2, 4, 8))
    assert [parameters.padded_size(rows) for rows in (1, 2, 3, 4, 5, 8)] == [2, 2, 4, 4, 8, 8]


def test_the_execution_size_counts_only_with_splitting() -> None:
    assert BatchParameters(8, max_execution_batch_size=4).execution_size == 8
    split = BatchParameters(8, enable_large_batch_splitting=True, max_execution_batch_size=4)
    assert split.execution_size == 4
    assert BatchParameters(8, enable_large_batch_splitting=True).execution_size == 8


def test_no_batches_in_the_queue_mean_one_as_in_tensorflow_serving(tmp_path: Path) -> None:
    text = "max_enqueued_batches { value: 0 }"
    assert read_parameters(written(tmp_path, text)).max_enqueued_batches == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_batch_size { value: 0 }", "input_batch_size_limit must be positive; was 0"),
        ("batch_timeout_micros { value: -1 }", "batch_timeout_micros must be non-negative; was -1"),
        ("num_batch_threads { value: 0 }", "num_batch_threads must be positive; was 0"),
        (
            "max_enqueued_batches { value: 0 } enable_large_batch_splitting { value: true }",
            "max_enqueued_batches must be positive; was 0",
        ),
        (
            "max_batch_size { value: 8 } allowed_batch_sizes: 4",
            "Last entry in allowed_batch_sizes must match max_batch_size; last entry was 4; "
            "expected 8",
        ),
        (
            "max_batch_size { value: 8 } allowed_batch_sizes: 8 max_execution_batch_size { value: 4"
            " } enable_large_batch_splitting { value: true }",
            "Last entry in allowed_batch_sizes must be equal to max_execution_batch_size; last "
            "entry was 8; expected 4",
        ),
        (
            "max_batch_size { value: 8 } allowed_batch_sizes: 8 allowed_batch_sizes: 8",
            "allowed_batch_sizes entries must be monotonically increasing",
        ),
        (
            "max_batch_size { value: 8 } allowed_batch_sizes: 0 allowed_batch_sizes: 8",
            "allowed_batch_sizes entries must be monotonically increasing",
        ),
        (
            "max_batch_size { value: 8 } enable_large_batch_splitting { value: true } "
            "max_execution_batch_size { value: 9 }",
            "max_execution_batch_size must be positive and at most max_batch_size; was 9",
        ),
        ("max_batch_size: 8", "Invalid protobuf file"),
    ],
)
def test_a_wrong_value_is_named_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        read_parameters(written(tmp_path, text))
    assert message in raised.value.message
    assert str(tmp_path / "batching.txt") in raised.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="Cannot read the batching parameters"):
        read_parameters(tmp_path / "none")
