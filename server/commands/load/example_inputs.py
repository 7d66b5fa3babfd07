"""Make the inputs of a request from a signature's types and shapes, or read them from a file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import protos as pb
from runtime.api import DataType, dtypes
from runtime.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError
from server.codec.json_body import parse_json
from server.codec.session.tensor_reader import read_tensor

_SEED = 0  # the same request in every run
_MAX_ELEMENTS = 1 << 28  # of one input: a gibibyte of float32


@dataclasses.dataclass(frozen=True, slots=True)
class InputSpec:
    """Type and shape of an input; −1 stands for a size that a request chooses, None for any."""

    data_type: DataType
    shape: tuple[int, ...] | None

    def array(self, batch: int) -> np.ndarray:
        """Return an array of this type: the first size that is open is `batch`, others are 1.

        Numbers are random in [0, 1); integers are 0, which most tables have a row for; a string is
        empty, which a parser of examples accepts.
        Raises ResourceExhaustedError if that is too large.
        """
        sizes = (-1,) if self.shape is None else self.shape
        shape = [1 if size < 0 else size for size in sizes]
        if sizes and sizes[0] < 0:
            shape[0] = batch
        if math.prod(shape) > _MAX_ELEMENTS:
            raise ResourceExhaustedError(
                f"An example of the shape {shape} has more than {_MAX_ELEMENTS} elements"
            )
        if self.data_type is DataType.STRING:
            return np.full(shape, b"", object)
        values = np.random.default_rng(_SEED).random(shape, np.float32)
        dtype = self.data_type.numpy
        if np.issubdtype(dtype, np.integer) or dtype == np.bool_:
            return np.zeros(shape, dtype)
        return np.asarray(values).astype(dtype)


def specs_of(signature: pb.SignatureDef) -> dict[str, InputSpec]:
    """Return {alias: type and shape} of a signature's inputs.

    Raises InvalidArgumentError if an input is not a dense tensor.
    """
    specs = {}
    for alias, info in signature.inputs.items():
        if info.WhichOneof("encoding") not in ("name", None):
            raise InvalidArgumentError(
                f"The input {alias} is no tensor but a {info.WhichOneof('encoding')}, of which no "
                "example can be made"
            )
        shape = info.tensor_shape
        specs[alias] = InputSpec(
            dtypes.from_number(info.dtype)[0],
            None if shape.unknown_rank else tuple(dim.size for dim in shape.dim),
        )
    return specs


def make_inputs(
    specs: Mapping[str, InputSpec], batch: int, file: str | None
) -> dict[str, np.ndarray]:
    """Return the arrays of `file`, or else an example of each input.

    The file holds `{"inputs": {name: value}}`, each value in JSON.
    Raises NotFoundError if it can't be read, and InvalidArgumentError if it says something else.
    """
    if file is None:
        return {name: spec.array(batch) for name, spec in sorted(specs.items())}
    body = parse_json(read_file(file))
    inputs = body.get("inputs") if isinstance(body, dict) and len(body) == 1 else None
    if not isinstance(inputs, dict):
        raise InvalidArgumentError(
            f'{file} must hold {{"inputs": {{name: value}}}} and nothing else, for the inputs '
            f"{', '.join(sorted(specs)) or '(none)'}"
        )
    if wrong := sorted(inputs.keys() ^ specs.keys()):
        raise InvalidArgumentError(
            f"{file} must give each of the inputs {', '.join(sorted(specs))}; wrong or missing: "
            f"{', '.join(wrong)}"
        )
    return {name: read_tensor(inputs[name], name, specs[name].data_type) for name in sorted(specs)}


def read_file(path: str) -> bytes:
    """Return the content of a file; raise NotFoundError if it can't be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotFoundError(f"Cannot read {path}: {error.strerror}") from None


def signature_named(
    signatures: Mapping[str, pb.SignatureDef], name: str, where: str
) -> pb.SignatureDef:
    """Return a signature; raise NotFoundError with the names that there are."""
    if name not in signatures:
        known = sorted(each for each in signatures if not each.startswith("__saved_model"))
        raise NotFoundError(
            f"{where} has no signature {name!r}; it has {', '.join(known) or 'none'}. Name one "
            "with --signature"
        )
    return signatures[name]
