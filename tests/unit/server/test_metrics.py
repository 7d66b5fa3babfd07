import itertools

from runtime.api import EngineUse, SessionOptions, new_session
from runtime.clusters.engine_choice import EngineChoice
from runtime.clusters.running.cluster_counts import ClusterCounts
from runtime.foundation.global_thread_pools import global_thread_pools
from server import runtime_metrics
from server.metrics import Distribution, Metrics, Tally


def test_requests_steps_sessions_and_pools_are_exposed():
    pool = global_thread_pools.get_or_create("metrics_low", 1, low_priority=True)
    metrics = Metrics()
    metrics.watch_sessions(lambda: 3)
    metrics.requests["run_session", 200].add(0.003)
    metrics.session_opened()
    metrics.session_closed("expired")
    lines = metrics.exposition().decode().splitlines()
    for expected in (
        'runstep_requests_total{api="run_session",status="200"} 1.0',
        'runstep_request_seconds_bucket{api="run_session",le="0.0025"} 0.0',
        'runstep_request_seconds_bucket{api="run_session",le="0.005"} 1.0',
        "runstep_sessions_opened_total 1.0",
        'runstep_sessions_closed_total{reason="expired"} 1.0',
        "runstep_sessions_open 3.0",
        f'runstep_thread_pool_threads{{low_priority="true",pool="{pool.name}"}} 1.0',
        f'runstep_thread_pool_tasks{{low_priority="true",pool="{pool.name}"}} 0.0',
        f'runstep_thread_pool_run_ratio{{low_priority="true",pool="{pool.name}"}} 0.0',
        f'runstep_thread_pool_completed_total{{low_priority="true",pool="{pool.name}"}} 0.0',
    ):
        assert expected in lines, expected


def test_clusters_are_exposed():
    lines = Metrics().exposition().decode().splitlines()
    names = {line.split(" ")[0] for line in lines}
    assert {
        "runstep_cluster_compilations_total",
        "runstep_cluster_compile_seconds_total",
        "runstep_cluster_compile_failures_total",
        "runstep_cluster_refused_nodes_total",
        "runstep_cluster_run_failures_total",
        "runstep_cluster_forms",
        "runstep_cluster_bytes",
    } <= names


def test_engines_of_clusters_are_exposed(monkeypatch):
    class Form:
        bytes_held = 7

    counts = ClusterCounts()
    monkeypatch.setattr(runtime_metrics, "cluster_counts", counts)
    choice = EngineChoice("openvino", "bfloat16")
    use = EngineUse("OpenVINO 1.0", "float32", "the processor has it not")
    monkeypatch.setattr(runtime_metrics, "unmet_choices", lambda: {choice: use})
    forms = [Form(), Form(), Form()]
    for form in forms:
        counts.compiled(form, 0.5, "OpenVINO 1.0", "float32")
    counts.compiled(Form(), 0.5, "ONNX Runtime 1.0", "float32")
    lines = Metrics().exposition().decode().splitlines()
    for expected in (
        "runstep_cluster_compilations_total 4.0",
        "runstep_cluster_forms 3.0",
        "runstep_cluster_bytes 21.0",
        'runstep_cluster_engine_forms{engine="OpenVINO 1.0",precision="float32"} 3.0',
        'runstep_cluster_engine_forms{engine="ONNX Runtime 1.0",precision="float32"} 0.0',
        'runstep_cluster_engine_unmet{engine="openvino",precision="bfloat16",'
        'reason="the processor has it not",used="OpenVINO 1.0 in float32"} 1.0',
    ):
        assert expected in lines, expected


def test_sessions_of_the_runtime_are_counted():
    def figures():
        lines = Metrics().exposition().decode().splitlines()
        found = dict(line.rsplit(" ", 1) for line in lines if "runtime_sessions" in line)
        return [
            float(found.get(f'runstep_runtime_sessions_{each}{{runtime_type="DIRECT_SESSION"}}', 0))
            for each in ("created_total", "open")
        ]

    created, open_before = figures()
    session = new_session(SessionOptions())
    assert figures() == [created + 1, open_before + 1]
    session.close()
    session.close()
    assert figures() == [created + 1, open_before]


def test_bounds_of_buckets_are_inclusive_however_many_values_there_are():
    distribution = Distribution((1.0, 2.0))
    first, second = Tally(distribution), Tally(distribution)
    values = itertools.cycle((0.5, 1.0, 1.5, 2.0, 2.5, 1e9))
    for value, tally in zip(values, [first] * 4000 + [second] * 2000, strict=False):
        tally.add(value)
    assert len(distribution.recent) < 1000
    assert distribution.counts == [2000, 2000, 2000]
    assert distribution.cumulative() == [("1.0", 2000.0), ("2.0", 4000.0), ("+Inf", 6000.0)]
    assert distribution.sum == 1000 * (0.5 + 1.0 + 1.5 + 2.0 + 2.5 + 1e9)
    assert (first.count, second.count) == (4000, 2000)
    distribution.add(2.0)
    assert (distribution.counts[1], distribution.sum) == (2001, 1000 * 1e9 + 7502.0)
    assert len(distribution.recent) == 0
