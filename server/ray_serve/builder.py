"""The application as Ray Serve imports it: for `serve deploy`, and KubeRay's RayService.

    import_path: server.ray_serve.builder:application
    args: {models: [{name: digits, base_path: /models/digits}], ray: {serve: {replicas: 2}}}

`args` are the keys of a server.yaml. Ray Serve replaces all replicas when they change; what stands
in `deployments` of its own configuration, such as `num_replicas`, it changes in place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ray.serve.exceptions import RayServeException

from runtime.errors import FailedPreconditionError, OpError
from server.ray_serve.application import build, check_deployable
from server.settings import Settings
from server.settings_sources import read_values


def application(args: dict[str, Any]) -> Any:
    """Return the application whose settings are `args`.

    Neither a file nor the environment is read, because any node of the cluster may build it. Raises
    RayServeException if the settings are wrong; Ray Serve shows its text as the status.
    """
    try:
        settings = read_values(Settings, args, "args")
        check_deployable(settings)
        for model in settings.models:
            if not Path(model.base_path).is_absolute():
                raise FailedPreconditionError(
                    f"Model {model.name}: base_path must be absolute, because replicas run in "
                    f"other folders, got {model.base_path!r}"
                )
        return build(settings, settings.ray.application)
    except OpError as error:
        raise RayServeException(error.message) from None
