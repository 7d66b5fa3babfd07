"""Name scopes and names that are refused."""

from __future__ import annotations

import pytest

from runtime.client import (
    constant,
    name_scope,
)


def test_names_stand_under_scopes(graph):
    with name_scope("s") as scope:
        assert scope == "s/"
        assert constant(1, name="c").name == "s/c:0"
        with name_scope("t"):
            assert constant(1).name == "s/t/Const:0"
        for root in (None, ""):
            with name_scope(root):
                assert "/" not in constant(1).name
        with pytest.raises(ValueError, match="Duplicate node name in graph: 'c'"):
            constant(1, name="c/")
            constant(1, name="c/")
    with name_scope("s") as scope:
        assert scope == "s_1/"
    with name_scope("s/"):
        assert constant(1).name == "s/Const:0"
        assert graph.get_name_scope() == "s"


def test_names_that_are_none(graph):
    with pytest.raises(ValueError) as error, name_scope("_q"):
        pass
    assert str(error.value) == (
        "'_q' is not a valid root scope name. A root scope name has to match the following "
        "pattern: ^[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*$"
    )
    with pytest.raises(ValueError) as error:
        graph.create_op("NoOp", name="_x")
    assert str(error.value) == (
        "`_x` is not a valid node name. Accepted names conform to Regex "
        "/re.compile('^[A-Za-z0-9.][A-Za-z0-9_.\\\\\\\\/>-]*$')/"
    )
