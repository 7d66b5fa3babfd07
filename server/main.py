"""The command line: `runstep serve|show|run|bench|export|deploy|key|completion|version`.

Exit codes: 0 done, 1 failed (the message is on standard error), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

# Each library uses one thread: steps run in parallel, and threads within them would compete for the
# same cores. The variables are read when numpy is imported, so they must be set before.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

EXIT_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code."""
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {_with_hints(unknown, options.parser)}")
    command: Callable[[argparse.Namespace], int] = options.command
    from runtime.errors import OpError, system_error

    try:
        code = command(options)
        sys.stdout.flush()
        return code
    except OpError as error:
        _report(f"{error.code.name}: {error.message}")
        return EXIT_FAILED
    except BrokenPipeError:  # the reader has closed the pipe, as in `runstep show … | head`
        _discard_output()
        return EXIT_FAILED
    except OSError as error:  # standard output can't be written, for example on a full disk
        _discard_output()
        refused = "the system" if options.command is _serve else "standard output"
        failed = system_error(error, error.filename or refused)
        _report(f"{failed.code.name}: {failed.message}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_FAILED


def _with_hints(unknown: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """Return arguments that a parser does not have, with the options that look like them."""
    import difflib

    known = parser._option_string_actions
    texts = []
    for argument in unknown:
        near = difflib.get_close_matches(argument.partition("=")[0], known, 1, 0.7)
        texts.append(f"{argument} (did you mean {near[0]}?)" if near else argument)
    return " ".join(texts)


def _discard_output() -> None:
    """Discard what standard output has not written, which would fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(text: str) -> None:
    with contextlib.suppress(OSError):  # standard error can't be written either
        print(f"runstep: {text}", file=sys.stderr)


# Each command imports only what it needs, because `runstep version` must not load a server.


def _serve(options: argparse.Namespace) -> int:
    from server.starting.early_collector import pause_collector
    from server.starting.early_signals import end_at_signals
    from server.starting.standard_streams import open_standard_streams

    end_at_signals()
    open_standard_streams()
    pause_collector()
    from server.commands.serve import serve

    return serve(options)


def _show(options: argparse.Namespace) -> int:
    from server.commands.show import show

    return show(options)


def _run(options: argparse.Namespace) -> int:
    from server.commands.run import run

    return run(options)


def _bench(options: argparse.Namespace) -> int:
    from server.commands.bench import bench

    return bench(options)


def _completion(options: argparse.Namespace) -> int:
    from server.commands.completion import completion

    return completion(_parser(), options.shell)


def _export(options: argparse.Namespace) -> int:
    from server.commands.export import export

    return export(options)


def _deploy(options: argparse.Namespace) -> int:
    from server.commands.deploy import deploy

    return deploy(options)


def _key(_: argparse.Namespace) -> int:
    from server.commands.key import key

    return key()


def _version(_: argparse.Namespace) -> int:
    from server.commands.version import version

    return version()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="runstep", description="Serve TensorFlow graphs over HTTP, without TensorFlow."
    )
    parser.add_argument("--version", action=_Version, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_serve(commands)
    _add_show(commands)
    _add_run(commands)
    _add_bench(commands)
    _add_export(commands)
    _add_deploy(commands)
    key = commands.add_parser(
        "key",
        help="make an API key",
        description="Prints a new key, and its hash for access.keys_file (SECURITY.md).",
    )
    key.set_defaults(command=_key)
    shells = commands.add_parser(
        "completion",
        help="print a shell's completion of these commands",
        description="Write it to ~/.local/share/bash-completion/completions/runstep, to "
        "_runstep in a folder of zsh's $fpath, or to ~/.config/fish/completions/runstep.fish.",
    )
    shells.add_argument("shell", choices=["bash", "zsh", "fish"], metavar="bash|zsh|fish")
    shells.set_defaults(command=_completion)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=_version)
    for each in commands.choices.values():
        each.set_defaults(parser=each)
    return parser


class _Version(argparse.Action):
    """`--version` without a command."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, *_: object) -> None:
        """Print the version, and end the process."""
        raise SystemExit(_version(argparse.Namespace()))


_Commands = argparse._SubParsersAction  # argparse has no public name for this type


def _add_serve(commands: _Commands[argparse.ArgumentParser]) -> None:
    from server.commands.flag_arguments import add_flags

    parser = commands.add_parser(
        "serve",
        help="serve models and sessions over HTTP and gRPC",
        allow_abbrev=False,
        # All of them would fill a screen.
        usage="%(prog)s [-h] [--config PATH] [--host HOST] [--processes N] [FLAG …]",
        description="Settings come from the file, then the environment (RUNSTEP_REST__PORT=…), "
        "then these flags. The flags below --processes are those of tensorflow_model_server.",
    )
    add = parser.add_argument
    add("--config", metavar="PATH", help="YAML file (default: configs/server.yaml if it exists)")
    add("--host", help="address to listen on")
    add("--processes", metavar="N", help="how many processes serve, or auto: one for each core")
    add_flags(parser)
    parser.set_defaults(command=_serve)


def _add_show(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "show",
        help="describe a SavedModel, and say whether it can be served",
        description="Prints signatures with their inputs and outputs, the ops, and which of them "
        "have no kernel here. Exits with 1 when the model could not be served.",
    )
    parser.add_argument("directory", metavar="DIR", help="a SavedModel, or a folder of versions")
    parser.add_argument("--tags", default="serve", help="comma-separated (default: serve)")
    parser.set_defaults(command=_show)


def _add_run(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run one step of a SavedModel",
        description="Names are a signature's inputs and outputs, or tensors (x:0). A value is "
        "JSON, @file.json, a .npy file, or file.npz:array. Prints JSON, or writes an .npz file.",
    )
    add = parser.add_argument
    add("directory", metavar="DIR", help="a SavedModel, or a folder of versions")
    add("--tags", default="serve", help="comma-separated (default: serve)")
    add("--signature", default="serving_default", help="whose names are meant")
    add("--feed", action="append", default=[], metavar="NAME=VALUE", help="repeat for each input")
    add("--fetch", action="append", default=[], metavar="NAME", help="repeat; default: all outputs")
    add("--target", action="append", default=[], metavar="NODE", help="run this node; repeat")
    add("--output", metavar="FILE", help="write an .npz file instead of JSON")
    add("--trace", nargs="?", const="", metavar="FILE",
        help="say what was slow; FILE gets a timeline that ui.perfetto.dev opens")  # fmt: skip
    parser.set_defaults(command=_run)


def _add_bench(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="load a server or a SavedModel for some seconds, and measure it",
        description="URL is http://HOST:PORT/v1/models/NAME (REST), "
        "http://HOST:PORT/v2/models/NAME (Open Inference Protocol, binary) or "
        "grpc://HOST:PORT/NAME; https and grpcs use TLS. DIR is a SavedModel, or a folder of "
        "versions, whose steps run in this process. The request is an example made from the "
        "signature. Ctrl-C prints what was measured so far. Exits with 1 if a request failed.",
    )
    add = parser.add_argument
    add("target", metavar="URL|DIR", help="what is loaded")
    add("--seconds", type=float, default=10.0, metavar="S", help="how long (default: 10)")
    add("--callers", type=int, metavar="N", help="calls at a time (default: 8, for DIR 1)")
    add("--rate", type=float, metavar="R",
        help="calls a second, each measured from the time it is due; "
        "without it each caller calls again when it is answered")  # fmt: skip
    add("--warmup", type=float, default=1.0, metavar="S", help="not counted (default: 1 second)")
    add("--timeout", type=float, default=30.0, metavar="S", help="of a call (default: 30 seconds)")
    add("--signature", default="serving_default", metavar="NAME", help="whose inputs are meant")
    add("--batch", type=int, default=1, metavar="N", help="first size of the example's inputs")
    add("--json", metavar="FILE",
        help='the request: for HTTP its body as it is, else {"inputs": {name: value}}')  # fmt: skip
    add("--model", metavar="NAME", help="the model, if the URL names none")
    add("--protocol", choices=["rest", "v2", "grpc"], help="if the URL's path does not say")
    add("--header", action="append", default=[], metavar="LINE",
        help="NAME: VALUE of each request, or @FILE with such lines; repeat")  # fmt: skip
    add("--ca", metavar="FILE", help="PEM file of the authority that has signed the certificate")
    add("--tags", metavar="TAGS", help="of DIR, comma-separated (default: serve)")
    parser.set_defaults(command=_bench)


def _add_export(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "export",
        help="write a SavedModel again, or freeze it",
        description="Loads DIR and writes it to the new or empty folder OUT, with the variables "
        "as they are after loading.",
    )
    add = parser.add_argument
    add("directory", metavar="DIR", help="a SavedModel, or a folder of versions")
    add("output", metavar="OUT", help="where to write")
    add("--tags", default="serve", help="comma-separated (default: serve)")
    add("--freeze", action="store_true",
        help="make variables constants and keep only what the signatures need")  # fmt: skip
    parser.set_defaults(command=_export)


def _add_deploy(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "deploy",
        help="deploy models as replicas of Ray Serve",
        description="Connects to a Ray cluster that runs, deploys the models of the settings, and "
        "returns when they serve. Deploying again changes what runs, without a failed request. "
        "Exits with 1 if a model does not serve: docs/ray_serve.md.",
    )
    add = parser.add_argument
    add("where", choices=["ray"], metavar="ray", help="the only one there is")
    add("--config", metavar="PATH", help="YAML file (default: configs/server.yaml if it exists)")
    add("--address", metavar="auto|HOST:PORT", help="of the cluster's GCS (default: ray.address)")
    add("--name", default="runstep", help="of the application (default: runstep)")
    add("--timeout", type=float, default=600.0, metavar="S",
        help="until the models must serve (default: 600 seconds)")  # fmt: skip
    add("--remove", action="store_true", help="remove the application")
    parser.set_defaults(command=_deploy)


def program() -> NoReturn:
    """Run the command of the process's arguments, and end the process."""
    code = main()
    from server.process_end import end_process

    end_process(code)


if __name__ == "__main__":
    program()
