"""BackgroundCalls: predictions of low priority by gRPC, which the background process answers.

As over HTTP (`server/background/request_place.py`), they are those that name their priority in the
metadata, of models whose signatures only read. A connection of gRPC can't be handed over, so the
request and its response are passed on as they are: neither is parsed here. That takes more of the
interpreter lock than a small message, and less than a large one.

Guarantees: used from one event loop. A call that the background process can't answer, because it
is not there or ends, is answered here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from google.protobuf.message import DecodeError

import protos as pb
from runtime.errors import OpError, UnavailableError
from server.background.request_place import RequestPlace
from server.codec.message_fields import bytes_fields
from server.memory_in_flight import COUNTED_BYTES, hold
from server.models.manager import ModelManager
from server.models.model_version import ModelVersion
from server.processes.worker_host import WorkerHost
from server.rpc import inference_protocol_service
from server.rpc.call import PRIORITY_METADATA, CallContext
from server.rpc.model_specs import read_spec
from server.rpc.process_calls import ProcessCalls

_log = logging.getLogger(__name__)

_LEAST_BYTES = 64 << 10  # of a request that is passed on
_Find = Callable[[ModelManager, bytes], "ModelVersion | None"]


def _specified(models: ModelManager, data: bytes) -> ModelVersion | None:
    """Return the version that a request means whose field 1 is a ModelSpec."""
    spec = pb.serving.ModelSpec.FromString(b"".join(bytes_fields(data, 1)))
    target = read_spec(spec)
    return models.find(target.name, target.version, target.label)


def _named(models: ModelManager, data: bytes) -> ModelVersion | None:
    """Return the version that a ModelInferRequest means."""
    *_, name = (b"", *bytes_fields(data, 1))
    *_, number = (b"", *bytes_fields(data, 2))
    return models.find(name.decode(), int(number) if number else None)


_PREDICTION = "/tensorflow.serving.PredictionService"
_FIND: dict[str, _Find] = {
    f"{_PREDICTION}/Predict": _specified,
    f"{_PREDICTION}/Classify": _specified,
    f"{_PREDICTION}/Regress": _specified,
    f"/{inference_protocol_service.NAME}/ModelInfer": _named,
}


def called_version(models: ModelManager, path: str, data: bytes) -> ModelVersion | None:
    """Return the version that a serialized request means; None if it means none that is served.

    It is None, too, for methods that are no predictions of one model.
    """
    find = _FIND.get(path)
    try:
        return None if find is None else find(models, data)
    except (OpError, DecodeError, ValueError):  # whoever parses the request says what is wrong
        return None


class BackgroundCalls:
    """The calls of one process that is not the background process."""

    def __init__(self, host: WorkerHost, models: ModelManager, place: RequestPlace) -> None:
        self._host = host
        self._models = models
        self._priorities = host.background_priorities
        self._place = place
        self._calls = ProcessCalls(host)

    async def answer(self, path: str, data: bytes, context: CallContext) -> bytes | None:
        """Return the serialized response to a call that was admitted; None if it belongs here.

        Raises the errors with which the background process answers. The first call that belongs
        there has it started.
        """
        is_low = context.metadata.get(PRIORITY_METADATA) in self._priorities
        if not is_low or len(data) < _LEAST_BYTES:
            return None
        version = called_version(self._models, path, data)
        if version is None or not self._place.takes(version):
            return None
        if not self._host.background_answers:
            self._host.want_background()
            return None
        if len(data) >= COUNTED_BYTES:
            hold(len(data), is_body=True)
        try:
            answer = await self._calls.call(self._host.background, path, data, context)
        except (OSError, UnavailableError) as error:  # it has ended, or hangs
            _log.warning("A call of low priority is answered here: %s", error)
            return None
        if isinstance(answer, OpError):
            raise answer
        return answer
