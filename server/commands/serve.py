"""`runstep serve`: convert flags to settings, then run the server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import protos as pb
from runtime.errors import InvalidArgumentError
from server.commands.flag_values import FlagValues
from server.commands.version import print_model_server_version
from server.settings import Settings, load_settings, settings_sources, with_parallelism
from server.settings_sources import Sources
from server.starting.early_collector import resume_collector
from server.text_message import read_text_message


def serve(options: argparse.Namespace) -> int:
    """Serve until stopped, and return the exit code."""
    if options.version:
        return print_model_server_version()
    flags = FlagValues(options, os.environ)
    if options.host is not None:
        flags.settings.setdefault("rest", {})["host"] = options.host
        flags.flag_of["rest.host"] = "--host"
    if options.processes is not None:
        flags.settings["processes"] = options.processes
        flags.flag_of["processes"] = "--processes"
    config = None if options.config is None else Path(options.config)
    sources = settings_sources(config, flags.flag_of, model_variables=flags.model_variables)
    settings = load_settings(config, flags.settings, sources=sources)
    return start(settings, flags, sources)


def start(settings: Settings, flags: FlagValues, sources: Sources) -> int:
    """Start the server with settings and the flags that concern its threads.

    Raises InvalidArgumentError if it would have no port.
    """
    if settings.rest.port == settings.grpc.port == 0 and settings.grpc.socket_path is None:
        raise InvalidArgumentError(
            "Nobody could reach the server: rest.port (--rest_api_port) and grpc.port (--port) are "
            "0, and there is no grpc.socket_path (--grpc_socket_path)"
        )
    settings = with_threads(settings, flags)
    from server.supervision.divided_settings import process_count

    count = process_count(settings)
    if count > 1:
        from server.log import configure_logging
        from server.supervision.supervisor import Supervisor

        configure_logging(settings.log.level, settings.log.format)
        resume_collector()
        return Supervisor(settings, count, str(sources), flags.notes).run()
    # Imported after the settings are read, so that a wrong setting is reported at once.
    from server.process.serve import serve as serve_process
    from server.start_log import Start

    resume_collector()
    return serve_process(settings, Start(sources, flags.notes))


def with_threads(settings: Settings, flags: FlagValues) -> Settings:
    """Return the settings with the numbers of threads of the flags and of `session_config_file`.

    Flags take precedence. Raises what `with_parallelism` and `read_text_message` raise.
    """
    session = flags.get("tensorflow_session_parallelism")
    inter_op = flags.get("tensorflow_inter_op_parallelism")
    intra_op = flags.get("tensorflow_intra_op_parallelism")
    configured = _configured_threads(settings)
    if session is None:
        inter_op = configured.get("inter_op") if inter_op is None else inter_op
        intra_op = configured.get("intra_op") if intra_op is None else intra_op
    return with_parallelism(settings, session, inter_op, intra_op)


def _configured_threads(settings: Settings) -> Mapping[str, int]:
    if settings.session_config_file is None:
        return {}
    config = read_text_message(settings.session_config_file, pb.ConfigProto())
    threads: dict[str, Any] = {
        "inter_op": config.inter_op_parallelism_threads,
        "intra_op": config.intra_op_parallelism_threads,
    }
    return {name: number for name, number in threads.items() if number > 0}
