"""All routes of the console, in their order: one list."""

from __future__ import annotations

from collections.abc import Callable

from starlette.routing import Route

from server.access.access import Access
from server.console.data_routes import data_routes
from server.console.event_stream import EventStream
from server.console.live_figures import Figures
from server.console.page_files import page_routes
from server.console.steering_routes import SteeringCalls, end_by_signal
from server.lifecycle import Lifecycle
from server.metrics import Metrics
from server.models.administration import Administration
from server.models.inference_service import InferenceService
from server.sessions.service import SessionService
from server.settings import Settings
from server.steps.priorities import Priorities


def console_routes(
    access: Access,
    administration: Administration,
    metrics: Metrics,
    lifecycle: Lifecycle,
    sessions: SessionService,
    inference: InferenceService,
    priorities: Priorities,
    settings: Settings,
    drain: Callable[[], object] = end_by_signal,
) -> list[Route]:
    """Return the routes; none if `console.enabled` is false.

    They are plain routes, so that the OpenAPI document does not have them.
    """
    if not settings.console.enabled:
        return []
    figures = Figures(metrics, inference.manager, lifecycle, sessions.open_count, access.redact)
    events = EventStream(figures, lifecycle)
    steering = SteeringCalls(access, administration, events, settings, drain)
    return [
        *steering.routes(),
        *data_routes(sessions, inference, priorities, settings),
        *page_routes(),
    ]
