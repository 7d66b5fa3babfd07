"""`runstep deploy ray`: served models as replicas of Ray Serve, on a cluster that runs."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from types import ModuleType

from runtime.errors import FailedPreconditionError, InvalidArgumentError
from server.addresses import address_of
from server.settings import Settings, load_settings

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def deploy(options: argparse.Namespace) -> int:
    """Deploy or remove an application, and return the exit code."""
    if not _NAME.match(options.name):
        raise InvalidArgumentError(
            f"--name must be 1 to 64 letters, digits, - and _, got {options.name!r:.80}"
        )
    if options.timeout <= 0:
        raise InvalidArgumentError(f"--timeout must be positive, got {options.timeout:g}")
    if options.remove:
        address = options.address or "auto"
        _module().remove(address, options.name)
        print(f"Application {options.name} is removed")
        return 0
    settings = load_settings(None if options.config is None else Path(options.config))
    if options.address is not None:
        ray = settings.ray.model_copy(update={"address": options.address})
        settings = settings.model_copy(update={"ray": ray})
    _module().deploy(settings, options.name, options.timeout, _say)
    print(_done(settings, options.name))
    return 0


def _module() -> ModuleType:
    """Return the module that deploys, which imports Ray."""
    # Read when Ray is imported. Without it a call of Ray after the command has left the cluster,
    # such as one of Ray Serve's threads, would start a cluster on this machine.
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"
    try:
        from server.ray_serve import deployment
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("runtime", "server", "protos"):
            raise
        raise FailedPreconditionError(
            "`runstep deploy ray` requires the extra and Ray Serve: "
            f"pip install 'runstep[ray]' 'ray[serve]' ({error})"
        ) from None
    return deployment


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _done(settings: Settings, name: str) -> str:
    rest, models = settings.rest, ", ".join(model.name for model in settings.models)
    scheme = "http" if settings.tls.certificate_file is None else "https"
    text = f"Application {name} serves {models} on {scheme}://{address_of(rest.host, rest.port)}"
    if settings.grpc.port != 0:
        text += f", gRPC on port {settings.grpc.port} of the nodes with a front"
    return text
