"""make_framework_app(): every router and every error handler of FastAPI on one page.

Predictions and steps pass none of them. Importing this module takes as long as the start of a bare
FastAPI application, so `create_app` imports it when the ports are open.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from runtime.errors import OpError
from server.access.access import Access
from server.console.routes import console_routes
from server.errors import handle_error
from server.host import Host
from server.lifecycle import Lifecycle
from server.metrics import Metrics
from server.models.administration import Administration
from server.models.inference_service import InferenceService
from server.package import package_version
from server.rest.docs_page import docs_route
from server.rest.health import Health
from server.rest.inference_protocol.docs import inference_protocol_paths
from server.rest.model_docs import model_paths
from server.rest.models import MalformedRoute, ModelsApi
from server.rest.openapi import document_plain_routes
from server.rest.operations import operations_router
from server.rest.session_docs import STEP_DOCS
from server.rest.session_steps import SessionSteps
from server.rest.sessions import SessionResource, session_router, step_routes
from server.sessions.service import SessionService
from server.settings import Settings
from server.steps.priorities import Priorities


def make_framework_app(
    access: Access,
    administration: Administration,
    metrics: Metrics,
    lifecycle: Lifecycle,
    sessions: SessionService,
    inference: InferenceService,
    priorities: Priorities,
    settings: Settings,
    *,
    host: Host,
    health: Health,
    steps: SessionSteps,
    models_api: ModelsApi,
) -> FastAPI:
    """Make the FastAPI application of one server, without its lifespan."""
    app = FastAPI(
        title="Runstep",
        version=package_version(),
        summary="TensorFlow graphs over HTTP, without TensorFlow",
        docs_url=None,  # FastAPI's pages load scripts from other hosts; see docs_page
        redoc_url=None,
        # A redirection would name whatever host the request names.
        redirect_slashes=False,
        # Routes are tried in this order, so the routes that run steps come first.
        routes=[*step_routes(steps)],
    )
    app.include_router(
        session_router(SessionResource(sessions, settings.rest.max_body_bytes, host))
    )
    app.include_router(
        operations_router(health, metrics, sessions.thread_pools, settings.rest.metrics_path, host)
    )
    app.router.routes += console_routes(
        access, administration, metrics, lifecycle, sessions, inference, priorities, settings
    )
    app.router.routes.append(MalformedRoute(models_api))
    for kind in (OpError, HTTPException, Exception):
        app.add_exception_handler(kind, handle_error)
    document_plain_routes(app, STEP_DOCS, model_paths() | inference_protocol_paths())
    app.router.routes.append(docs_route(app.openapi))
    return app
