"""The OpenAPI document."""

from __future__ import annotations

from fastapi import FastAPI

from server.rest.model_docs import model_paths
from server.rest.openapi import document_plain_routes


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
