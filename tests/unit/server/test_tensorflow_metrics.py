from server.metrics import Distribution, Metrics, histogram_family
from server.tensorflow_metrics import tensorflow_counter, tensorflow_text


def test_the_text_is_that_of_tensorflow_serving():
    latencies = Distribution((10.0, 32.4, 1187646.7))
    for value in (11, 12.25, 1e7):
        latencies.add(value)
    name = ":tensorflow:serving:request_latency"
    families = [
        tensorflow_counter(":tensorflow:core:graph_runs", (), {(): 3}),
        tensorflow_counter(
            ":tensorflow:serving:request_count",
            ("model_name", "status"),
            {('a"\\\n', "OK"): 2, ("", "NOT_FOUND"): 1},
        ),
        histogram_family(name, "text", ("model_name", "API"), {("m", "predict"): latencies}),
    ]
    assert tensorflow_text(families).splitlines() == [
        "# TYPE :tensorflow:core:graph_runs counter",
        ":tensorflow:core:graph_runs{} 3",
        "# TYPE :tensorflow:serving:request_count counter",
        r':tensorflow:serving:request_count{model_name="a\"\\\n",status="OK"} 2',
        ':tensorflow:serving:request_count{model_name="",status="NOT_FOUND"} 1',
        f"# TYPE {name} histogram",
        f'{name}_bucket{{model_name="m",API="predict",le="10"}} 0',
        f'{name}_bucket{{model_name="m",API="predict",le="32.4"}} 2',
        f'{name}_bucket{{model_name="m",API="predict",le="1.18765e+06"}} 2',
        f'{name}_bucket{{model_name="m",API="predict",le="+Inf"}} 3',
        f'{name}_count{{model_name="m",API="predict"}} 3',
        f'{name}_sum{{model_name="m",API="predict"}} 10000023.25',
    ]


def test_the_page_has_both_forms():
    class Collector:
        def collect(self):
            yield tensorflow_counter(":tensorflow:core:graph_runs", (), {(): 3})

    metrics = Metrics()
    metrics.registry.register(Collector())
    lines = metrics.exposition().decode().splitlines()
    assert lines[-2:] == [
        "# TYPE :tensorflow:core:graph_runs counter",
        ":tensorflow:core:graph_runs{} 3",
    ]
    assert "# TYPE runstep_sessions_opened_total counter" in lines
    assert sum("graph_runs" in line for line in lines) == 2
