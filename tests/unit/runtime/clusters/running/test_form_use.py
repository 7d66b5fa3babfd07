"""Which forms may stand in for which, and which can be freed."""

from __future__ import annotations

import pytest

from runtime.clusters import backend
from runtime.clusters.running.form_use import Use, is_spare, rank

pytest.importorskip("onnxruntime")


def test_normal_runs_never_have_the_form_of_low_priority_runs_alone() -> None:
    assert [rank({Use.LOW}, use) for use in Use] == [None, None, None, 0]
    assert rank({Use.WIDE}, Use.LOW) is None


def test_crowds_prefer_their_form_and_others_do_not() -> None:
    assert rank({Use.CROWDED}, Use.CROWDED) == 0
    assert rank({Use.WIDE}, Use.CROWDED) == 1
    assert rank({Use.NARROW}, Use.WIDE) == 1
    assert rank({Use.CROWDED}, Use.WIDE) == 2


def test_a_form_beside_the_main_one_is_spare() -> None:
    one_thread = backend.uses(Use.LOW, 1)
    assert is_spare(one_thread, [frozenset((Use.WIDE,))])
    assert not is_spare(one_thread, [one_thread])
    assert is_spare({Use.LOW}, [{Use.NARROW}])
    assert not is_spare({Use.WIDE}, [{Use.NARROW}])
    assert not is_spare({Use.CROWDED}, [{Use.LOW}])


def test_a_model_of_onnx_runtime_with_one_thread_has_all_uses_but_the_wide_one() -> None:
    assert backend.uses(Use.WIDE, 2) == {Use.WIDE}
    assert backend.uses(Use.WIDE, 1) == set(Use)
    assert backend.uses(Use.NARROW, 1) == {Use.NARROW, Use.CROWDED, Use.LOW}
