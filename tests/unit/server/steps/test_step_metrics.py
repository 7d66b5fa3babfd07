"""What is measured of steps, and what TensorFlow's names say of them."""

import pytest

from runtime.errors import Code
from server.metrics import Metrics
from server.steps.step_metrics import StepLabels, StepMetrics, StepTimes

ONLINE = StepLabels("online", "normal", "m")


def page(metrics):
    """The values of the metrics by name and labels."""
    served = Metrics()
    served.registry.register(metrics)
    lines = served.exposition().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def labelled(name, labels=ONLINE, le=None):
    values = {**({"le": le} if le else {}), "model": labels.model, "pool": labels.pool,
              "priority": labels.priority}  # fmt: skip
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in values.items()) + "}"


def seconds_of(found, metric, labels=ONLINE):
    return float(found[labelled(f"runstep_step_{metric}_seconds_sum", labels)])


def test_a_step_that_waited_is_in_all_three_histograms():
    metrics = StepMetrics()
    metrics.ended(ONLINE, Code.OK, StepTimes(started=10, began=12, ended=15, queued=3))
    found = page(metrics)
    assert seconds_of(found, "wait") == 2
    assert seconds_of(found, "run") == 3
    assert found[labelled("runstep_step_queue_steps_bucket", le="2.0")] == "0.0"
    assert found[labelled("runstep_step_queue_steps_bucket", le="4.0")] == "1.0"
    assert found['runstep_steps_total{code="OK",priority="normal"}'] == "1.0"
    assert found['runstep_step_seconds_sum{priority="normal"}'] == "5.0"
    assert found[":tensorflow:core:direct_session_runs{}"] == "1"
    assert found[":tensorflow:core:graph_runs{}"] == "1"
    assert found[":tensorflow:core:graph_run_time_usecs{}"] == "3000000"


def test_steps_that_run_at_once_neither_queue_nor_wait():
    metrics = StepMetrics()
    for seconds in (0.00005, 0.0015, 0.003):
        metrics.short(ONLINE).add(seconds)
    metrics.ended(ONLINE, Code.INTERNAL, StepTimes(started=1, ended=1.5))
    found = page(metrics)
    for metric in ("queue_steps", "wait_seconds", "run_seconds"):
        assert found[labelled(f"runstep_step_{metric}_count")] == "4.0"
    assert found[labelled("runstep_step_queue_steps_bucket", le="0.0")] == "4.0"
    assert seconds_of(found, "wait") == 0
    assert found[labelled("runstep_step_run_seconds_bucket", le="6.25e-05")] == "1.0"
    assert seconds_of(found, "run") == pytest.approx(0.50455)
    assert found['runstep_steps_total{code="OK",priority="normal"}'] == "3.0"
    assert found['runstep_steps_total{code="INTERNAL",priority="normal"}'] == "1.0"
    assert found['runstep_step_seconds_count{priority="normal"}'] == "4.0"
    assert metrics.count("normal", Code.OK) == 3
    assert metrics.count("normal", Code.INTERNAL) == 1
    assert metrics.count("low", Code.OK) == 0


def test_tensorflow_s_histogram_has_its_own_buckets():
    metrics = StepMetrics()
    for seconds in (0.00005, 0.001, 0.0011, 600):
        metrics.short(ONLINE).add(seconds)
    found = page(metrics)
    name = ":tensorflow:core:graph_run_time_usecs_histogram"
    bounds = [key for key in found if key.startswith(f"{name}_bucket")]
    assert len(bounds) == 21  # TF: Exponential(1000, 2, 20), and the infinite one
    assert found[f'{name}_bucket{{le="1000"}}'] == "2"
    assert found[f'{name}_bucket{{le="2000"}}'] == "3"
    assert found[f'{name}_bucket{{le="5.24288e+08"}}'] == "3"
    assert found[f'{name}_bucket{{le="+Inf"}}'] == found[f"{name}_count{{}}"] == "4"


@pytest.mark.parametrize("code", [Code.DEADLINE_EXCEEDED, Code.CANCELLED])
def test_a_step_that_ends_in_the_queue_has_waited_and_not_run(code):
    metrics = StepMetrics()
    metrics.ended(ONLINE, code, StepTimes(started=1, ended=3, queued=7))
    found = page(metrics)
    assert seconds_of(found, "wait") == 2
    assert found[labelled("runstep_step_run_seconds_count")] == "0.0"
    assert found[":tensorflow:core:direct_session_runs{}"] == "1"
    assert found[":tensorflow:core:graph_runs{}"] == "0"


def test_a_refused_step_has_not_waited():
    metrics = StepMetrics()
    metrics.ended(ONLINE, Code.RESOURCE_EXHAUSTED, StepTimes(started=1, ended=1, queued=7))
    found = page(metrics)
    assert found[labelled("runstep_step_wait_seconds_count")] == "0.0"
    assert found[labelled("runstep_step_queue_steps_count")] == "0.0"
    assert found['runstep_steps_total{code="RESOURCE_EXHAUSTED",priority="normal"}'] == "1.0"
    assert found['runstep_step_seconds_count{priority="normal"}'] == "1.0"


def test_models_pools_and_priorities_are_apart():
    metrics = StepMetrics()
    low = StepLabels("background", "low", "m")
    chosen = StepLabels("", "pool", "")
    metrics.short(ONLINE).add(1)
    metrics.ended(low, Code.OK, StepTimes(started=1, ended=3, began=2, queued=0))
    metrics.ended(chosen, Code.OK, StepTimes(started=1, ended=4, began=1, queued=0))
    found = page(metrics)
    assert [seconds_of(found, "run", labels) for labels in (ONLINE, low, chosen)] == [1, 1, 3]
    assert [
        found[f'runstep_step_seconds_sum{{priority="{each.priority}"}}']
        for each in (ONLINE, low, chosen)
    ] == ["1.0", "2.0", "3.0"]
