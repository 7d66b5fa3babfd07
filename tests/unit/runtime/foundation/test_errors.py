"""The errors that the whole runtime raises."""

from __future__ import annotations

from runtime.foundation.errors import AbortedError


def test_a_copy_is_another_exception_of_the_same_class_text_and_node() -> None:
    first = AbortedError("try again", "sum")

    second = first.copy()

    assert second is not first
    assert type(second) is AbortedError
    assert second.message == first.message == "try again\n\t [[{{node sum}}]]"


def test_the_text_can_be_had_without_the_node() -> None:
    assert AbortedError("try again", "sum").message_without_node == "try again"
