from pathlib import Path

import pytest

from server.models.load_metrics import LoadMetrics
from server.tensorflow_metrics import tensorflow_text

LOADER = ":tensorflow:cc:saved_model:load"


def test_loads_are_counted_by_folder_and_outcome():
    metrics = LoadMetrics()
    for _ in range(2):
        with metrics.load(Path("/m/1")):
            pass
    with pytest.raises(ValueError, match="broken"), metrics.load(Path("/m/2")):
        raise ValueError("broken")
    lines = tensorflow_text(metrics.collect()).splitlines()
    for line in (
        f"# TYPE {LOADER}_attempt_count counter",
        f'{LOADER}_attempt_count{{model_path="/m/1",status="success"}} 2',
        f'{LOADER}_attempt_count{{model_path="/m/2",status="fail"}} 1',
        f"# TYPE {LOADER}_latency counter",
    ):
        assert line in lines, line
    assert [line.split("}")[0] for line in lines if line.startswith(f"{LOADER}_latency")] == [
        f'{LOADER}_latency{{model_path="/m/1"'
    ]


def test_warm_ups_are_recorded():
    metrics = LoadMetrics()
    metrics.warmed_up(Path("/m/1"), "OK", 0.00002, 7)
    metrics.warmed_up(Path("/m/1"), "OK", 1, 7)
    metrics.warmed_up(Path("/m/2"), "DATA_LOSS: corrupted record at 0", 1, 0)
    lines = tensorflow_text(metrics.collect()).splitlines()
    warmup, labels = ":tensorflow:serving:model_warmup", 'model_path="/m/1",status="OK"'
    lost = 'model_path="/m/2",status="DATA_LOSS: corrupted record at 0"'
    for line in (
        f"{warmup}_records_read{{{labels}}} 14",
        f"{warmup}_records_read{{{lost}}} 0",
        f'{warmup}_latency_bucket{{{labels},le="18"}} 0',
        f'{warmup}_latency_bucket{{{labels},le="32.4"}} 1',
        f"{warmup}_latency_count{{{labels}}} 2",
        f"{warmup}_latency_count{{{lost}}} 1",
    ):
        assert line in lines, line
