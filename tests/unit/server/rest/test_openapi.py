"""The OpenAPI document."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from server.rest.model_docs import model_paths
from server.rest.openapi import document_plain_routes
from server.rest.session_docs import SESSION_DOCS, STEP_DOCS


def test_predict_is_first_and_no_code_is_there_that_never_comes() -> None:
    app = FastAPI()

    @app.get("/things/{number}")
    async def thing(number: int) -> int:
        return number

    document_plain_routes(app, {}, model_paths())
    schema = app.openapi()
    assert next(iter(schema["paths"])) == "/v1/models/{name}:predict"
    operations = [each for item in schema["paths"].values() for each in item.values()]
    assert "/things/{number}" in schema["paths"]
    assert not any("422" in each["responses"] for each in operations)
    assert "HTTPValidationError" not in schema["components"]["schemas"]


@pytest.mark.parametrize(
    ("call", "codes"),
    [
        ("list_sessions", []),
        ("create_session", [400, 403, 404, 429, 503, 504]),
        ("extend_session", [400, 403, 404, 409, 410, 429, 504]),
        ("delete_session", [404]),
        ("get_session", [404, 410]),
    ],
)
def test_a_session_call_lists_the_errors_that_it_returns(call: str, codes: list[int]) -> None:
    assert sorted(SESSION_DOCS[call]["responses"]) == codes


def test_calls_that_run_steps_list_what_a_step_may_not_do_and_full_queues() -> None:
    assert {"403", "429"} <= STEP_DOCS["run_session"]["responses"].keys()
    predict = model_paths()["/v1/models/{name}:predict"]["post"]["responses"]
    assert list(predict) == ["200", "400", "404", "429", "503", "504"]


def test_the_list_of_models_has_no_errors() -> None:
    paths = model_paths()
    assert list(paths["/v1/models"]["get"]["responses"]) == ["200"]
    assert list(paths["/v1/models/{name}"]["get"]["responses"]) == ["200", "400", "404"]
