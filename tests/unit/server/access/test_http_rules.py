import pytest

from server.access.http_rules import Need, need_of, session_in


@pytest.mark.parametrize(
    ("method", "path", "need"),
    [
        ("GET", "/healthz", Need.NOTHING),
        ("GET", "/readyz", Need.NOTHING),
        ("POST", "/healthz", Need.PREDICT),
        ("GET", "/healthz/x", Need.KNOWN),
        ("GET", "/docs", Need.NOTHING),
        ("GET", "/openapi.json", Need.NOTHING),
        ("OPTIONS", "/v1/models/m:predict", Need.NOTHING),
        ("GET", "/monitoring/prometheus/metrics", Need.KNOWN),
        ("GET", "/v1/threadpools", Need.KNOWN),
        ("GET", "/v1/models", Need.KNOWN),
        ("GET", "/V1/Models/m", Need.KNOWN),
        ("POST", "/v1/models/m:predict", Need.PREDICT),
        ("POST", "/V1/models/m:predict", Need.PREDICT),
        ("POST", "/a/new/call", Need.PREDICT),
        ("DELETE", "/a/new/call", Need.PREDICT),
        ("GET", "/v1/sessions", Need.SESSIONS),
        ("GET", "/v1/sessions/", Need.SESSIONS),
        ("POST", "/v1/sessions", Need.SESSIONS),
        ("DELETE", "/v1/sessions/i", Need.SESSIONS),
        ("GET", "/v1/sessions/i/graph", Need.SESSIONS),
        ("POST", "/v1/sessions/i:run", Need.SESSIONS),
        ("POST", "/v1/sessions/i:extend", Need.GRAPHS),
        ("POST", "/v1/sessionsx", Need.PREDICT),
        ("GET", "/console/api/sessions", Need.SESSIONS),
        ("GET", "/console/api/sessions/i/graph", Need.SESSIONS),
        ("POST", "/console/api/sessions/i/trace", Need.SESSIONS),
        ("GET", "/console/api/models/m", Need.KNOWN),
        ("POST", "/console/api/models/m/trace", Need.PREDICT),
        ("GET", "/v2/health/live", Need.NOTHING),
        ("GET", "/v2/health/ready", Need.NOTHING),
        ("GET", "/v2/models/m/ready", Need.KNOWN),
        ("POST", "/v2/models/m/infer", Need.PREDICT),
        ("POST", "/v2/repository/models/m/load", Need.KNOWN),
        ("POST", "/v2/models/m/trace/setting", Need.KNOWN),
        ("POST", "/v2/models/m/versions/1/infer", Need.PREDICT),
        ("POST", "/v2/systemsharedmemory/region/r/register", Need.PREDICT),
    ],
)
def test_needs(method, path, need):
    assert need_of(method, path) is need


@pytest.mark.parametrize(
    ("path", "session"),
    [
        ("/v1/sessions", None), ("/v1/sessions/", None), ("/v1/models/i", None),
        ("/v1/sessions/i", "i"), ("/v1/sessions/i:run", "i"), ("/v1/sessions/i/graph", "i"),
        ("/x/v1/sessions/i", None), ("/console/api/sessions", None),
        ("/console/api/sessions/i", "i"), ("/console/api/sessions/i/trace", "i"),
    ],
)  # fmt: skip
def test_session_in(path, session):
    assert session_in(path) == session
