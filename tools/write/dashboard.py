"""Write `configs/grafana_dashboard.json` from the panels below: `python tools/write/dashboard.py`.

A test compares the file with what this module makes, and evaluates every query on a server's
metrics.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[2] / "configs" / "grafana_dashboard.json"
_COLUMNS, _WIDTH, _HEIGHT = 24, 8, 8  # of Grafana's grid
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_RATE = "[$__rate_interval]"
_SERVING = ":tensorflow:serving:"
_MODEL_NAME, _MODEL = '{model_name=~"$model"}', '{model=~"$model|"}'


@dataclasses.dataclass(frozen=True, slots=True)
class Panel:
    """One panel: (query, legend) pairs; `unit` is Grafana's name."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    description: str = ""


def _per_second(metric: str, labels: str, selector: str = "") -> tuple[str, str]:
    legend = " ".join(f"{{{{{label}}}}}" for label in labels.split(", "))
    return f"sum by ({labels}) (rate({metric}{selector}{_RATE}))", legend


def _quantiles(metric: str, labels: str, selector: str = "") -> tuple[tuple[str, str], ...]:
    legend = " ".join(f"{{{{{label}}}}}" for label in labels.split(", "))
    return tuple(
        (
            f"histogram_quantile({quantile}, "
            f"sum by (le, {labels}) (rate({metric}_bucket{selector}{_RATE})))",
            f"p{name} {legend}",
        )
        for quantile, name in ((0.5, "50"), (0.99, "99"))
    )


def _mean(metric: str, labels: str) -> tuple[str, str]:
    parts = (f"sum by ({labels}) (rate({metric}_{part}{_RATE}))" for part in ("sum", "count"))
    return " / ".join(parts), f"{{{{{labels}}}}}"


_BATCHES = f"{_SERVING}batching_session:"
ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Served models, by TensorFlow Serving's metrics",
        (
            Panel("Requests", "reqps",
                  (_per_second(f"{_SERVING}request_count", "model_name, status", _MODEL_NAME),)),
            Panel("Requests that fail", "percentunit", ((
                f'sum(rate({_SERVING}request_count{{model_name=~"$model", status!="OK"}}{_RATE}))'
                f" / sum(rate({_SERVING}request_count{_MODEL_NAME}{_RATE}))", "failed"),)),
            Panel("Latency of requests", "µs",
                  _quantiles(f"{_SERVING}request_latency", "model_name, API, entrypoint",
                             _MODEL_NAME), "Successful requests only, from receipt to answer"),
            Panel("Latency of steps", "µs",
                  _quantiles(f"{_SERVING}runtime_latency", "model_name, API", _MODEL_NAME),
                  "Queues included"),
            Panel("Examples of classify and regress", "cps",
                  (_per_second(f"{_SERVING}request_example_count_total", "model"),)),
            Panel("Loads", "short", ((
                "sum by (model_path, status) (:tensorflow:cc:saved_model:load_attempt_count)",
                "{{model_path}} {{status}}"),), "Since the start of the process"),
            Panel("Mean time of loads", "µs", ((
                "sum by (model_path) (:tensorflow:cc:saved_model:load_latency)"
                " / sum by (model_path)"
                ' (:tensorflow:cc:saved_model:load_attempt_count{status="success"})',
                "load {{model_path}}"), (
                f"sum by (model_path) ({_SERVING}model_warmup_latency_sum) / sum by (model_path)"
                f" ({_SERVING}model_warmup_latency_count)", "warm-up {{model_path}}"))),
            Panel("Rows in a batch", "short", (
                (f"sum(rate({_BATCHES}processed_batch_size_sum{_RATE})) / "
                 f"sum(rate({_BATCHES}processed_batch_size_count{_RATE}))", "rows"),
                (f"sum(rate({_BATCHES}padding_size_sum{_RATE})) / "
                 f"sum(rate({_BATCHES}padding_size_count{_RATE}))", "of them padding"))),
            Panel("Time in the queue of a batch", "µs",
                  _quantiles(f"{_BATCHES}queuing_latency", "thread_pool_name")),
        ),
    ),
    (
        "Steps of every front",
        (
            Panel("Steps", "ops", (_per_second("runstep_steps_total", "priority, code"),)),
            Panel("Time in the queue of a pool", "s",
                  _quantiles("runstep_step_wait_seconds", "pool, priority, model", _MODEL)),
            Panel("Time on a thread", "s",
                  _quantiles("runstep_step_run_seconds", "pool, priority, model", _MODEL)),
            Panel("Steps found in the queue", "short",
                  _quantiles("runstep_step_queue_steps", "pool, priority", _MODEL)),
            Panel("Tasks that wait", "short", (("runstep_thread_pool_queued", "{{pool}}"),)),
            Panel("Threads that are busy", "percentunit",
                  (("runstep_thread_pool_run_ratio", "{{pool}}"),
                   ("runstep_thread_pool_stuck", "stuck in {{pool}}"))),
        ),
    ),
    (
        "Server",
        (
            Panel("HTTP requests", "reqps",
                  (_per_second("runstep_requests_total", "api, status"),)),
            Panel("Time of HTTP requests", "s", _quantiles("runstep_request_seconds", "api")),
            Panel("Refused callers", "reqps",
                  (_per_second("runstep_refusals_total", "front, reason"),)),
            Panel("Memory", "bytes", (
                ("runstep_memory_used_bytes", "tensors of steps"),
                ("runstep_memory_limit_bytes", "their limit"),
                ("runstep_memory_resident_bytes", "resident"),
                ("runstep_memory_resident_limit_bytes", "limit for new work"))),
            Panel("Sessions", "short", (
                ("runstep_sessions_open", "open"),
                (f"rate(runstep_sessions_opened_total{_RATE})", "opened per second"),
                (f"sum by (reason) (rate(runstep_sessions_closed_total{_RATE}))",
                 "{{reason}} per second"))),
            Panel("Compiled parts of graphs", "short", (
                ("runstep_cluster_forms", "forms in memory"),
                ("runstep_cluster_compile_failures_total", "compilations that failed"),
                ("runstep_cluster_run_failures_total", "runs repeated by numpy kernels"))),
        ),
    ),
)  # fmt: skip


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    return {
        "title": "Runstep",
        "uid": "runstep",
        "tags": ["runstep", "tensorflow"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_data_source(), _models()]},
        "panels": list(_panels()),
    }


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource",
            "query": "prometheus"}  # fmt: skip


def _models() -> dict[str, Any]:
    return {
        "name": "model", "label": "Model", "type": "query", "datasource": _SOURCE,
        "query": f"label_values({_SERVING}request_count, model_name)", "refresh": 2,
        "includeAll": True, "allValue": ".*", "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }  # fmt: skip


def _panels() -> Iterator[dict[str, Any]]:
    number = y = 0
    for title, panels in ROWS:
        number += 1
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [],
               "gridPos": {"x": 0, "y": y, "w": _COLUMNS, "h": 1}}  # fmt: skip
        y += 1
        for index, panel in enumerate(panels):
            number += 1
            row, column = divmod(index, _COLUMNS // _WIDTH)
            place = {"x": column * _WIDTH, "y": y + row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            yield _panel(number, panel, place)
        y += _HEIGHT * -(-len(panels) // (_COLUMNS // _WIDTH))


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": query,
             "legendFormat": legend}
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }  # fmt: skip


def text() -> str:
    """Return the content of the file."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
