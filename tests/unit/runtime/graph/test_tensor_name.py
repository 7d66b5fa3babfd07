"""Names of tensors: which part is the output's index."""

from __future__ import annotations

import pytest

from runtime.graph.tensor_name import fed_more_than_once, parse_tensor_name


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("x", ("x", 0)),
        ("x:0", ("x", 0)),
        ("scope/x:12", ("scope/x", 12)),
        ("^x", ("x", -1)),
        ("x:y", ("x:y", 0)),
        ("x:²", ("x:²", 0)),
        (":1", ("", 1)),
        ("x:" + "0" * 5000, ("x:" + "0" * 5000, 0)),  # longer than Python converts to an int
    ],
)
def test_a_name_is_a_node_and_an_index(name: str, parsed: tuple[str, int]) -> None:
    assert parse_tensor_name(name) == parsed


def test_the_error_of_a_tensor_fed_twice_has_tensorflows_text() -> None:
    assert fed_more_than_once("x:0").message == 'Endpoint "x:0" fed more than once.'
