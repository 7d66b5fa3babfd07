"""The console's calls that show what a session or a model is made of: one list."""

from __future__ import annotations

from starlette.routing import Route

from server.console.model_routes import model_routes
from server.console.session_routes import session_routes
from server.models.inference_service import InferenceService
from server.sessions.service import SessionService
from server.settings import Settings
from server.steps.priorities import Priorities


def data_routes(
    sessions: SessionService,
    inference: InferenceService,
    priorities: Priorities,
    settings: Settings,
) -> list[Route]:
    """Return the routes below `/console/api/sessions` and `/console/api/models`.

    They are plain routes, so that the OpenAPI document does not have them. What they compute that
    takes long runs on the pool on which models are loaded, whose priority is low.
    """
    return [
        *session_routes(sessions, inference.manager, priorities, settings),
        *model_routes(inference, priorities.load_pool, settings),
    ]
