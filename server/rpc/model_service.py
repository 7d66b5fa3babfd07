"""TensorFlow Serving's ModelService: the states of versions, and the reload of the configuration.

TF: tensorflow_serving/model_servers/{model_service_impl,get_model_status_impl}.cc
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import protos as pb
from runtime.errors import InvalidArgumentError
from server.access.caller import Caller
from server.metrics import Metrics
from server.models.administration import Administration
from server.models.managed_models import VersionStatus
from server.models.manager import ModelManager
from server.rpc.call import CallContext, Method


class ModelService:
    """The service of one server."""

    def __init__(
        self, manager: ModelManager, administration: Administration, metrics: Metrics
    ) -> None:
        self._manager = manager
        self._administration = administration
        self._metrics = metrics

    def methods(self) -> dict[str, Method]:
        """Return the methods of the service by name."""
        return {
            "GetModelStatus": Method(
                pb.serving.GetModelStatusRequest.FromString, self.get_model_status
            ),
            "HandleReloadConfigRequest": Method(
                pb.serving.ReloadConfigRequest.FromString, self.handle_reload_config_request
            ),
        }

    async def get_model_status(
        self, request: pb.serving.GetModelStatusRequest, call: CallContext
    ) -> pb.serving.GetModelStatusResponse:
        """Return the states of a model's versions; a label is ignored, as over REST."""
        if not request.HasField("model_spec"):
            raise InvalidArgumentError("Missing ModelSpec")
        spec = request.model_spec
        version = spec.version.value if spec.HasField("version") else None
        statuses = self._manager.statuses(spec.name, version)
        return pb.serving.GetModelStatusResponse(
            model_version_status=[_status(each, call.caller) for each in statuses]
        )

    async def handle_reload_config_request(
        self, request: pb.serving.ReloadConfigRequest, call: CallContext
    ) -> pb.serving.ReloadConfigResponse:
        """Serve exactly the models of a configuration; return when the new ones serve.

        The response has the increase of the metrics that the request names.
        """
        self._administration.check(call.caller)
        before = self._values(request.metric_names)
        await self._administration.reload(request.config, call.seconds_left)
        response = pb.serving.ReloadConfigResponse()
        response.status.SetInParent()
        for name, value in self._values(request.metric_names).items():
            response.metric.add(name=name, int64_value_increase=value - before[name])
        return response

    def _values(self, names: Iterable[str]) -> dict[str, int]:
        """Return the first value of each metric, or 0; `/a/b` and `:a:b` are the same name."""
        wanted = {name: name.replace("/", ":") for name in names}
        if not wanted:
            return {}
        found: dict[str, int] = {}
        for family in self._metrics.registry.collect():
            for sample in family.samples:
                found.setdefault(sample.name, int(sample.value))
        return {name: found.get(ours, 0) for name, ours in wanted.items()}


def _status(status: VersionStatus, caller: Caller) -> pb.serving.ModelVersionStatus:
    message = pb.serving.ModelVersionStatus(
        version=status.version,
        state=status.state.value,  # the names are the same
    )
    message.status.SetInParent()
    if status.error is not None:
        text = caller.shown_text(status.error.message)
        code: Any = int(status.error.code)  # the canonical number
        message.status.CopyFrom(pb.serving.StatusProto(error_code=code, error_message=text))
    return message
