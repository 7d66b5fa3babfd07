from server.models.serving_metrics import MAX_UNKNOWN_MODELS, OTHER_MODELS, ServingMetrics


def counts(metrics):
    family = next(each for each in metrics.collect() if each.name.endswith(":request_count"))
    return {
        (sample.labels["model_name"], sample.labels["status"]): sample.value
        for sample in family.samples
    }


def test_the_names_that_clients_make_up_are_bounded():
    metrics = ServingMetrics({"m"}.__contains__)
    for number in range(MAX_UNKNOWN_MODELS + 5):
        metrics.request_failed(f"made_up_{number}", "NOT_FOUND")
    metrics.request_failed("made_up_0", "NOT_FOUND")
    metrics.request_failed("m", "NOT_FOUND")
    metrics.request_failed("", "INVALID_ARGUMENT")
    found = counts(metrics)
    assert len(found) == MAX_UNKNOWN_MODELS + 3
    assert found["made_up_0", "NOT_FOUND"] == 2
    assert found[OTHER_MODELS, "NOT_FOUND"] == 5
    assert found["m", "NOT_FOUND"] == found["", "INVALID_ARGUMENT"] == 1


def test_a_long_name_is_no_label():
    metrics = ServingMetrics()
    metrics.request_failed("x" * 129, "NOT_FOUND")
    assert counts(metrics) == {(OTHER_MODELS, "NOT_FOUND"): 1}


def test_examples_are_counted_and_distributed():
    metrics = ServingMetrics()
    for count in (1, 3, 40_000):
        metrics.examples_received("m", count)
    samples = {
        (sample.name.rsplit(":", 1)[1], sample.labels.get("le")): sample.value
        for family in metrics.collect()
        if "example" in family.name
        for sample in family.samples
    }
    assert samples["request_example_count_total", None] == 40_004
    assert samples["request_example_counts_bucket", "1.0"] == 1
    assert samples["request_example_counts_bucket", "4.0"] == 2
    assert samples["request_example_counts_bucket", "16384.0"] == 2
    assert samples["request_example_counts_bucket", "+Inf"] == 3
