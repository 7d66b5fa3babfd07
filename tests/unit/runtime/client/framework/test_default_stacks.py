"""The default graph and its reset."""

from __future__ import annotations

import pytest

from runtime.client import (
    get_default_graph,
    reset_default_graph,
)


def test_the_default_graph_is_not_reset_while_another_is_entered(graph):
    with pytest.raises(AssertionError, match="to clear nested graphs"):
        reset_default_graph()


def test_the_default_graph_is_reset_at_the_top():
    before = get_default_graph()
    reset_default_graph()
    assert get_default_graph() is not before
