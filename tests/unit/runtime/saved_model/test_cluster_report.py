"""Which nodes of a model may be in clusters, and why the others may not."""

from __future__ import annotations

import pathlib

from runtime.saved_model.cluster_report import report_clusters
from runtime.saved_model.saved_model_files import find_meta_graph, read_saved_model

MODELS = pathlib.Path(__file__).parents[3] / "fixtures" / "saved_models"


def test_each_node_outside_has_a_reason() -> None:
    folder = str(MODELS / "text_classifier")
    (found,) = [
        each
        for each in report_clusters(find_meta_graph(read_saved_model(folder), ["serve"]))
        if each.signature == "serving_default"
    ]
    assert sum(found.reasons.values()) == sum(found.outside.values()) > 0
    assert {op for op, _ in found.reasons} == set(found.outside)
    assert all(why for _, why in found.reasons)
