"""Short runs use as many threads as is measured to pay."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.clusters.running import background_cluster, run_width
from runtime.clusters.running.background_cluster import BackgroundCluster, State
from runtime.clusters.running.cluster import (
    FIRST_JUDGED_RUN,
    LAST_JUDGED_RUN,
    WIDTH_JUDGED_RUN,
)
from runtime.clusters.running.compiled_form import CompiledForm
from runtime.clusters.running.form_use import Use
from runtime.executors.clustered import ClusteredExecutor
from tests.unit.runtime.executors.clustered_steps import (
    cluster_of,
    eager,
    executor_of,
    new_step,
    ones,
    relu_of_sum,
    wait,
    warm_up,
)

pytest.importorskip("onnxruntime")
__all__ = ["eager"]

SAMPLE = ((2, 3), (2, 3))
JUDGE: Any = BackgroundCluster._judge  # which `eager` replaces
NARROW_SECONDS = 120e-6


@pytest.fixture
def executor(eager: None, monkeypatch: pytest.MonkeyPatch) -> ClusteredExecutor:
    """One whose cluster has a narrow form, for runs that are short; at most two threads."""
    monkeypatch.setattr(background_cluster, "thread_width", lambda: 2)
    monkeypatch.setattr(BackgroundCluster, "_is_short", lambda *_: True)
    made = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(made, ones(2, 3), ones(2, 3))
    (form,) = cluster_of(made).forms
    assert form.threads == 1
    return made


def judge(executor: ClusteredExecutor, form: CompiledForm, seconds: float) -> list[int]:
    """Return the widths of the forms after `form` was judged with this time of a run."""
    cluster = cluster_of(executor)
    form.best[SAMPLE] = seconds
    cluster._judge_width(form, SAMPLE, None)
    wait(executor)
    return sorted(each.threads for each in cluster.forms)


def test_few_weights_stay_with_one_thread(executor: ClusteredExecutor) -> None:
    (narrow,) = cluster_of(executor).forms
    assert judge(executor, narrow, NARROW_SECONDS) == [1]


@pytest.mark.parametrize(
    ("narrow_seconds", "wide_seconds", "widths"),
    [
        (120e-6, 60e-6, [1, 2]),
        (120e-6, 90e-6, [1]),  # the gain is too small in proportion
        (120e-6, 130e-6, [1]),
    ],
)
def test_many_weights_are_tried_with_more_threads(
    executor: ClusteredExecutor,
    monkeypatch: pytest.MonkeyPatch,
    narrow_seconds: float,
    wide_seconds: float,
    widths: list[int],
) -> None:
    monkeypatch.setattr(run_width, "WIDE_BYTES", -1)
    monkeypatch.setattr(run_width, "_is_shared", [True])
    (narrow,) = cluster_of(executor).forms
    assert judge(executor, narrow, narrow_seconds) == [1, 2]
    wide = next(form for form in cluster_of(executor).forms if form.threads == 2)
    wide.runs = LAST_JUDGED_RUN  # when some milliseconds may have been slow ones
    assert judge(executor, wide, wide_seconds) == [1, 2]
    wide.runs = WIDTH_JUDGED_RUN
    assert judge(executor, wide, wide_seconds) == widths


def test_runs_that_more_threads_can_not_pay_for_are_not_tried_with_them(
    executor: ClusteredExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_width, "WIDE_BYTES", -1)
    monkeypatch.setattr(run_width, "_is_shared", [True])
    (narrow,) = cluster_of(executor).forms
    assert judge(executor, narrow, 20e-6) == [1]


def test_with_one_thread_the_form_stays(eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_cluster, "thread_width", lambda: 1)
    executor = executor_of(relu_of_sum(), ["x", "y"], ["z"])
    warm_up(executor, ones(2, 3), ones(2, 3))
    (form,) = cluster_of(executor).forms
    assert form.uses >= {Use.WIDE, Use.NARROW}
    assert judge(executor, form, NARROW_SECONDS) == [1]
    assert cluster_of(executor).forms == (form,)


def test_forms_are_judged_after_few_runs_and_many(
    executor: ClusteredExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    monkeypatch.setattr(BackgroundCluster, "_judge", lambda _, form, *__: judged.append(form.runs))
    (form,) = cluster_of(executor).forms
    for runs in (FIRST_JUDGED_RUN, LAST_JUDGED_RUN, WIDTH_JUDGED_RUN, WIDTH_JUDGED_RUN + 1):
        form.runs = runs - 1
        executor.run(new_step(), [ones(2, 3), ones(2, 3)])
    assert judged == [FIRST_JUDGED_RUN, LAST_JUDGED_RUN, WIDTH_JUDGED_RUN]


@pytest.mark.parametrize(
    ("form_seconds", "numpy_seconds", "states"),
    [
        (60e-6, 50e-6, [State.COMPILED, State.DISSOLVED]),
        (40e-6, 50e-6, [State.COMPILED, State.COMPILED]),
    ],
)
def test_a_form_that_looks_slow_at_first_is_judged_again(
    executor: ClusteredExecutor,
    form_seconds: float,
    numpy_seconds: float,
    states: list[State],
) -> None:
    cluster = cluster_of(executor)
    (form,) = cluster.forms
    form.best[SAMPLE], cluster.numpy_seconds[SAMPLE] = form_seconds, numpy_seconds
    seen = []
    for form.runs in (FIRST_JUDGED_RUN, LAST_JUDGED_RUN):
        JUDGE(cluster, form, SAMPLE, None)
        wait(executor)
        seen.append(cluster.state)
    assert seen == states
