"""`runstep bench URL|DIR`: load a server or a SavedModel for a limited time, and measure it."""

from __future__ import annotations

import argparse
import re
import ssl
from collections.abc import Sequence
from pathlib import Path

from runtime.errors import InvalidArgumentError, NotFoundError, UnavailableError
from server.commands.load.address import Address, is_url, parse_address
from server.commands.load.callers import Callers
from server.commands.load.example_inputs import read_file
from server.commands.load.report import describe, describe_size
from server.commands.load.target import CallFailed, Size, Target
from server.commands.model_folder import find_saved_model, read_tags
from server.commands.progress import Done, Progress

EXIT_FAILED = 1
_URL_CALLERS = 8
_MAX_CALLERS = 1024  # each is a thread
_HEADER = re.compile(r"[!#$%&'*+.^_`|~\w-]+:[^\r\n]*", re.ASCII)  # RFC 9110, 5.1
_URL_ONLY = ("protocol", "model", "ca")


def bench(options: argparse.Namespace) -> int:
    """Load the target and print the report; return 0 if every request was answered.

    Raises OpError if a value can't be used, or the target can't be called at all.
    """
    size = _size(options)
    target = _target(options)
    try:
        print(f"{target.description}\n{describe_size(size)}", flush=True)
        return _measure(target, size, options)
    finally:
        target.close()


def _measure(target: Target, size: Size, options: argparse.Namespace) -> int:
    callers = Callers(target, size)
    with Progress("Warming up"):
        try:
            callers.warm_up()
        except CallFailed as failure:
            raise UnavailableError(
                f"The first request failed with {failure.code}: {failure.message}"
                + ("" if options.json else "\nIt was made from the signature; --json gives another")
            ) from None

    def done() -> Done:
        part, requests = callers.progress()
        return Done(part, f"{requests} requests")

    interrupted = False
    with Progress("Measuring", done=done):
        try:
            callers.run()
        except KeyboardInterrupt:
            interrupted = True
            callers.stop()
    measured = callers.measured()
    for line in describe(measured, size):
        print(line.rstrip())
    return EXIT_FAILED if interrupted or measured.failed or not measured.requests else 0


def _size(options: argparse.Namespace) -> Size:
    callers = options.callers
    if callers is None:
        callers = _URL_CALLERS if is_url(options.target) else 1
    for name, value, least, most in (
        ("seconds", options.seconds, 0.01, 86400),
        ("callers", callers, 1, _MAX_CALLERS),
        ("rate", 1 if options.rate is None else options.rate, 0.001, 1e6),
        ("warmup", options.warmup, 0, 3600),
        ("timeout", options.timeout, 0.001, 3600),
        ("batch", options.batch, 1, 1 << 24),
    ):
        if not least <= value <= most:
            raise InvalidArgumentError(f"--{name} is from {least:g} to {most:g}, got {value:g}")
    return Size(options.seconds, callers, options.rate, options.warmup)


def _target(options: argparse.Namespace) -> Target:
    if is_url(options.target):
        return _url_target(options)
    for name in _URL_ONLY:
        if getattr(options, name) is not None:
            raise InvalidArgumentError(f"--{name} is for a URL; {options.target} is a folder")
    if options.header:
        raise InvalidArgumentError(f"--header is for a URL; {options.target} is a folder")
    if not Path(options.target).exists():
        raise NotFoundError(
            f"There is no folder {options.target}; a URL begins with http:// or grpc://"
        )
    from server.commands.load.folder_target import FolderTarget, load_folder

    folder = find_saved_model(options.target)
    with Progress(f"Loading {folder}"):
        bundle = load_folder(folder, read_tags(options.tags or "serve"))
    return FolderTarget(bundle, folder, options.signature, options.batch, options.json)


def _url_target(options: argparse.Namespace) -> Target:
    if options.tags is not None:
        raise InvalidArgumentError("--tags is for a folder; a server has loaded its models")
    address = parse_address(options.target, options.protocol, options.model)
    if options.ca is not None and not address.encrypted:
        raise InvalidArgumentError(f"--ca is for https and grpcs; {options.target} has no TLS")
    headers = _headers(options.header)
    if address.protocol == "grpc":
        return _grpc(address, headers, options)
    from server.commands.load.http_target import (
        HttpServer,
        inference_target,
        model_names,
        rest_target,
    )

    server = HttpServer(address, _tls(address, options.ca), headers, options.timeout)
    if not address.model:
        raise _no_model(model_names(server))
    if address.protocol == "rest":
        return rest_target(server, options.signature, options.batch, options.json)
    return inference_target(server, options.signature, options.batch, options.json)


def _grpc(address: Address, headers: Sequence[str], options: argparse.Namespace) -> Target:
    if not address.model:
        raise _no_model([])
    from server.commands.load.grpc_target import GrpcServer, grpc_target

    roots = None if options.ca is None else read_file(options.ca)
    server = GrpcServer(address, roots, headers, options.timeout)
    return grpc_target(server, options.signature, options.batch, options.json)


def _no_model(names: Sequence[str]) -> InvalidArgumentError:
    known = f"; the server has {', '.join(names)}" if names else ""
    return InvalidArgumentError(f"Name the model in the URL or with --model{known}")


def _tls(address: Address, ca: str | None) -> ssl.SSLContext | None:
    if not address.encrypted:
        return None
    if ca is not None:
        read_file(ca)  # for an error that names the file
    try:
        return ssl.create_default_context(cafile=ca)
    except ssl.SSLError as error:
        raise InvalidArgumentError(f"{ca} has no certificates in PEM form: {error}") from None


def _headers(given: Sequence[str]) -> list[str]:
    """Return the lines of headers: each is given, or in a file that `@` names."""
    lines: list[str] = []
    for each in given:
        # The text of a file is not in the list of processes, which everybody may read.
        lines += (
            read_file(each[1:]).decode(errors="replace").splitlines()
            if each.startswith("@")
            else [each]
        )
    for line in lines:
        if not _HEADER.fullmatch(line):
            raise InvalidArgumentError("--header needs NAME: VALUE, or @FILE with such lines")
    return lines
