"""Serve the calls for operators: health, readiness, thread pools and metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from prometheus_client.metrics_core import Metric
from starlette.requests import Request
from starlette.responses import Response

from runtime.api import ThreadPool
from runtime.errors import InvalidArgumentError
from server.access.caller import Caller
from server.host import ALONE, Host
from server.metrics import CONTENT_TYPE, Metrics, exposition_of
from server.processes.labelled_metrics import MetricsText, joined_page, labelled_text
from server.processes.merged_metrics import families_to_wire, merged_families
from server.processes.merged_pools import merged_pools
from server.rest.health import Health
from server.rest.http_messages import caller_of, json_response
from server.runtime_metrics import named_global_pools

# Returns the (name, pool) pairs of the sessions that a caller may see.
SessionPools = Callable[[Caller], Iterable[tuple[str, ThreadPool]]]


# What of a Ray cluster a page of metrics can be about; "" is everything.
_PARTS = frozenset({"", "front", "nodes"})


def pool_figures(
    pools: Iterable[tuple[str, ThreadPool]], origin: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the figures of pools as JSON values, with what `origin` says of their process."""
    return [dataclasses.asdict(pool.stats()) | {"name": name, **origin} for name, pool in pools]


def _page(
    families: Sequence[Metric], origin: Mapping[str, str], of_nodes: list[MetricsText] | None
) -> bytes:
    if not of_nodes and not origin:
        return exposition_of(families)
    return joined_page([labelled_text(families, origin), *(of_nodes or ())])


def operations_router(
    health: Health,
    metrics: Metrics,
    session_pools: SessionPools,
    metrics_path: str | None,
    host: Host = ALONE,
) -> APIRouter:
    """Return the routes for load balancers, orchestrators and Prometheus.

    `metrics_path` is where the metrics are, or None without metrics. What the other processes of
    `host` say is added up with what this one has.
    """
    router = APIRouter(tags=["operations"], default_response_class=Response)

    router.get("/healthz", summary="Alive")(health.healthz)
    router.get("/readyz", summary="Ready for requests")(health.readyz)

    @router.get("/v1/threadpools", summary="Thread pools and their figures")
    async def thread_pools(request: Request) -> Response:
        """Return the named pools, then the pools that only one session uses.

        Those on the nodes of a Ray cluster say on which, and in which process of the node.
        Ids of sessions that are not the caller's own are masked.
        """
        pools = [*named_global_pools(), *session_pools(caller_of(request.scope))]
        figures = pool_figures(pools, host.origin)
        for others in await host.ask("threadpools", caller_of(request.scope)):
            figures += others
        return json_response({"thread_pools": merged_pools(figures)})

    async def prometheus_metrics(request: Request) -> Response:
        """Return all metrics in Prometheus's text format.

        On a Ray cluster, `?from=front` is those of this front alone, and `?from=nodes` is those of
        all others, so that a scrape of several fronts counts nothing twice.
        """
        part = request.query_params.get("from", "")
        if part not in _PARTS:
            raise InvalidArgumentError(f"from must be front or nodes, got {part!r:.40}")
        of_nodes = None if part == "front" else await host.metrics_of_nodes()
        if part == "nodes":
            page = joined_page(of_nodes or [])
        else:
            families = metrics.families()
            others = await host.metrics_of_others(families)
            if others:
                families = merged_families([families_to_wire(families), *others])
            page = _page(families, host.origin, of_nodes)
        return Response(page, headers={"Content-Type": CONTENT_TYPE})

    if metrics_path is not None:
        router.get(metrics_path, summary="Metrics for Prometheus")(prometheus_metrics)
    return router
