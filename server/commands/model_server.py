"""The executable `tensorflow_model_server`: TensorFlow Serving's flags, defaults and messages.

The flags are those of `runstep serve`, but HTTP is off unless --rest_api_port is given, no file of
settings is read unless --config is given, and MODEL_NAME is not read, which is for the image's
entry point. An unknown argument is reported, and the server starts.

TF: tensorflow_serving/model_servers/main.cc
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

# Before numpy is imported, as in server/main.py.
# Before numpy is imported, as in server/main.py.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

EXIT_FAILED = 255  # TF: return -1


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print the fault and the usage, and exit."""
        print(message)
        print(self.format_help())
        raise SystemExit(EXIT_FAILED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stopped, and return the exit code."""
    from server.starting.early_signals import end_at_signals
    from server.starting.standard_streams import open_standard_streams

    end_at_signals()
    open_standard_streams()
    from runtime.errors import OpError
    from server.commands.flag_arguments import add_flags
    from server.commands.version import print_model_server_version

    parser = _Parser("tensorflow_model_server", allow_abbrev=False)
    parser.add_argument("--config", metavar="PATH", help="YAML file with further settings")
    add_flags(parser)
    options, unknown = parser.parse_known_args(arguments)
    if options.version:
        return print_model_server_version()
    if unknown:
        print(f"unknown argument: {unknown[0]}")
        print(parser.format_usage(), flush=True)
    try:
        return _serve(options)
    except OpError as error:
        print(f"Failed to start server. Error: {error.code.name}: {error.message}")
        return EXIT_FAILED
    except OSError as error:
        print(f"Failed to start server. Error: {error}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_FAILED


def _serve(options: argparse.Namespace) -> int:
    from runtime.errors import InvalidArgumentError
    from server.commands.flag_values import FlagValues
    from server.commands.serve import start
    from server.settings import load_settings, settings_sources

    if options.port == 0 and not options.grpc_socket_path:
        raise InvalidArgumentError(
            "At least one of server_options.grpc_port or server_options.grpc_socket_path must be "
            "set."
        )
    config = None if options.config is None else Path(options.config)
    if config is None and not (options.model_base_path or options.model_config_file):
        raise InvalidArgumentError(
            "Both server_options.model_base_path and server_options.model_config_file are empty!"
        )
    flags = FlagValues(options)
    sources = settings_sources(config, flags.flag_of, has_default_file=False)
    if sources.of("rest.port") == "defaults":
        flags.settings.setdefault("rest", {})["port"] = 0
    settings = load_settings(config, flags.settings, environment={}, sources=sources)
    return start(settings, flags, sources)


def program() -> NoReturn:
    """Serve by the process's arguments, and end the process."""
    code = main()
    from server.process_end import end_process

    end_process(code)


if __name__ == "__main__":
    program()
