"""TensorFlow Serving's SessionService: steps by tensor names on a served model.

TF: tensorflow_serving/apis/session_service.proto
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import protos as pb
from runtime.api import fed_more_than_once
from server.codec.serving.proto_messages import read_tensors, write_session_run
from server.codec.session.proto_steps import bytes_needed
from server.memory_in_flight import hold
from server.models.administration import Administration
from server.models.inference_service import InferenceService
from server.models.session_run import SessionRun
from server.rpc.call import CallContext, Method, Reply
from server.rpc.model_specs import spec_of, target_of
from server.settings import Settings


class ServingSessionService:
    """The service of one server."""

    def __init__(
        self, inference: InferenceService, administration: Administration, settings: Settings
    ) -> None:
        self._session_run = SessionRun(inference, administration)
        self._max_bytes = settings.sessions.max_tensor_bytes
        self._as_content = settings.grpc.tensor_content

    def methods(self) -> dict[str, Method]:
        """Return the methods of the service by name."""
        return {"SessionRun": Method(pb.serving.SessionRunRequest.FromString, self.session_run)}

    async def session_run(self, request: pb.serving.SessionRunRequest, call: CallContext) -> Reply:
        """Run a step; the options of the request are ignored, as the protocol says."""
        target = target_of(request)
        size = request.ByteSize()
        needed = bytes_needed(size, [feed.tensor for feed in request.feed])
        if needed > size:  # its tensors repeat their values
            hold(needed)
        step = call.step()
        step.body_bytes = needed
        step.targets = list(request.target)

        def feeds() -> Mapping[str, np.ndarray]:
            protos: dict[str, pb.TensorProto] = {}
            for feed in request.feed:
                if feed.name in protos:
                    raise fed_more_than_once(feed.name)
                protos[feed.name] = feed.tensor
            return read_tensors(protos, self._max_bytes)

        names = list(request.fetch)
        values, size, version = await self._session_run.run(
            target.name,
            target.version,
            target.label,
            target.signature if request.tensor_name_is_alias else None,
            feeds,
            names,
            step,
        )
        spec = spec_of(target.name, version, target.signature)
        return Reply(size, write_session_run, (spec, names, values, self._as_content))
