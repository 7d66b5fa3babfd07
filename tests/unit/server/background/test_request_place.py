"""Which heads belong to the background process."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Iterator

import pytest

from runtime.api import SavedModelBundle, SessionOptions, load_saved_model
from runtime.errors import NotFoundError
from server.background.request_place import RequestPlace
from server.models.model_version import ModelVersion
from server.processes.session_ids import Place

MODELS = pathlib.Path(__file__).parents[4] / "examples" / "models"
ID = "AbCdEfGhIjKlMnOpQrStU_"  # the random part of a session's id
HERE = Place(1, 4)


def loaded(folder: pathlib.Path) -> SavedModelBundle:
    return load_saved_model(SessionOptions(), None, str(folder), ["serve"])


class Host:
    background = HERE
    has_same_models = True


class Models:
    """Serves `half_plus_two`, which reads, and `counter`, which counts."""

    def __init__(self) -> None:
        self._versions = {
            name: ModelVersion(
                name,
                1,
                load_saved_model(SessionOptions(), None, str(MODELS / name / "1"), ["serve"]),
            )
            for name in ("half_plus_two", "counter")
        }

    def find(self, name: str, version: int | None, label: str | None = None) -> ModelVersion:
        if name not in self._versions or version not in (None, 1) or label not in (None, "stable"):
            raise NotFoundError(name)
        return self._versions[name]

    def available_versions(self) -> Iterator[ModelVersion]:
        return iter(self._versions.values())

    def close(self) -> None:
        for each in self._versions.values():
            each.close()


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    models = Models()
    yield models
    models.close()


def head(line: str, *headers: str, length: str = "Content-Length: 9") -> bytes:
    return "".join(f"{each}\r\n" for each in (line, "Host: a", *headers, length, "")).encode()


LOW = "X-Priority: low"
PREDICT = "POST /v1/models/half_plus_two:predict HTTP/1.1"


@pytest.mark.parametrize(
    ("line", "headers", "expected"),
    [
        (PREDICT, [LOW], True),
        (PREDICT, ["x-priority:low"], True),
        (PREDICT, ["X-PRIORITY:\t low \t"], True),
        (PREDICT, ["X-Priority: other"], True),
        (PREDICT, ["X-Priority: normal"], False),
        (PREDICT, ["X-Priority: LOW"], False),
        (PREDICT, ["X-Priority: low, normal"], False),
        (PREDICT, ["X-Priority-Of: low"], False),
        (PREDICT, ["A: X-Priority: low"], False),
        (PREDICT, [], False),
        ("POST /v1/models/half_plus_two/versions/1:predict HTTP/1.1", [LOW], True),
        ("POST /v1/models/half_plus_two/versions/2:predict HTTP/1.1", [LOW], False),
        ("POST /v1/models/half_plus_two/labels/stable:classify HTTP/1.1", [LOW], True),
        ("POST /v1/models/half_plus_two/labels/none:regress HTTP/1.1", [LOW], False),
        ("POST /v1/models/half%5Fplus_two:predict HTTP/1.1", [LOW], True),
        ("POST /v1/models/half_plus_two:predict?a=b HTTP/1.1", [LOW], False),
        ("POST /v1/models/half_plus_two:predict HTTP/1.0", [LOW], False),
        ("POST /v1/models/missing:predict HTTP/1.1", [LOW], False),
        ("POST /v1/models/counter:predict HTTP/1.1", [LOW], False),
        ("POST /v2/models/half_plus_two/infer HTTP/1.1", [LOW], True),
        ("POST /v2/models/half_plus_two/versions/1/infer HTTP/1.1", [LOW], True),
        ("POST /v2/models/counter/infer HTTP/1.1", [LOW], False),
        ("GET /v1/models/half_plus_two/metadata HTTP/1.1", [LOW], False),
        ("POST /v1/sessions HTTP/1.1", [LOW], True),
        ("POST /v1/sessions HTTP/1.1", [], False),
        (f"POST /v1/sessions/{ID}-1-4:run HTTP/1.1", [LOW], True),
        (f"POST /v1/sessions/{ID}-1-4:run HTTP/1.1", [], False),
        (f"POST /v1/sessions/{ID}-1-3:run HTTP/1.1", [LOW], False),
        (f"POST /v1/sessions/{ID}-0-4:run HTTP/1.1", [LOW], False),
        (f"POST /v1/sessions/{ID}:run HTTP/1.1", [LOW], False),
        (f"GET /v1/sessions/{ID}-1-4 HTTP/1.1", [LOW], False),
        ("DELETE /v1/sessions HTTP/1.1", [LOW], False),
        ("", [LOW], False),
    ],
)
def test_heads(models: Models, line: str, headers: list[str], expected: bool) -> None:
    async def scenario() -> None:
        place = RequestPlace({"low", "other"}, models, Host())  # type: ignore[arg-type] # for this
        await place.look_at_all()
        for body in (b"", b"\r\nX-Priority: low\r\n\r\n"):
            assert place.is_background(head(line, *headers) + body) is expected

    asyncio.run(scenario())


def test_a_head_that_is_not_complete_stays(models: Models) -> None:
    async def scenario() -> None:
        place = RequestPlace({"low"}, models, Host())  # type: ignore[arg-type] # for this
        await place.look_at_all()
        whole = head(PREDICT, LOW)
        assert place.is_background(whole)
        assert not any(place.is_background(whole[:end]) for end in range(len(whole)))

    asyncio.run(scenario())


@pytest.mark.parametrize("length", ["A: b", "Transfer-Encoding: chunked", "Content-Length: x"])
def test_a_request_of_unknown_length_stays(models: Models, length: str) -> None:
    """What follows it on its connection could not be told from it."""

    async def scenario() -> None:
        place = RequestPlace({"low"}, models, Host())  # type: ignore[arg-type] # for this
        await place.look_at_all()
        assert not place.is_background(head(PREDICT, LOW, length=length))

    asyncio.run(scenario())


def test_requests_stay_until_it_is_known_what_their_model_does(models: Models) -> None:
    async def scenario() -> None:
        place = RequestPlace({"low"}, models, Host())  # type: ignore[arg-type] # for this
        assert not place.is_background(head(PREDICT, LOW))
        async with asyncio.timeout(30):
            while not place.is_background(head(PREDICT, LOW)):
                await asyncio.sleep(0.001)

    asyncio.run(scenario())


def test_predictions_stay_while_other_versions_are_served_there(models: Models) -> None:
    async def scenario() -> None:
        host = Host()
        place = RequestPlace({"low"}, models, host)  # type: ignore[arg-type] # for this
        await place.look_at_all()
        host.has_same_models = False
        assert not place.is_background(head(PREDICT, LOW))
        assert place.is_background(head("POST /v1/sessions HTTP/1.1", LOW))
        host.has_same_models = True
        assert place.is_background(head(PREDICT, LOW))

    asyncio.run(scenario())


def test_whether_a_model_only_reads_is_known_to_who_waits_for_it(models: Models) -> None:
    async def scenario() -> None:
        place = RequestPlace({"low"}, models, Host())  # type: ignore[arg-type] # for this
        for name, expected in (("half_plus_two", True), ("counter", False)):
            version = models.find(name, None)
            assert await place.only_reads(version) is expected
            assert await place.only_reads(version) is expected
        assert place.is_background(head(PREDICT, LOW))

    asyncio.run(scenario())
