"""The kernel of DecodeJSONExample, which converts tf.Example messages from JSON to protobuf.

TF: tensorflow/core/kernels/example_parsing_ops.cc (DecodeJSONExampleOp)
"""

from __future__ import annotations

import numpy as np
from google.protobuf import json_format

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import map_strings


def decode_json_example(json_examples: np.ndarray) -> np.ndarray:
    """DecodeJSONExample: parse each JSON string as a tf.Example and return it serialized.

    In the result, features are sorted by name and numbers are packed.
    """
    return map_strings(_example, json_examples)


def _example(text: bytes) -> bytes:
    # the JSON parser would accept an empty list in place of an object
    if not text.lstrip().startswith(b"{"):
        raise InvalidArgumentError("Error while parsing JSON: expected an object")
    try:
        message = json_format.Parse(text, pb.Example())
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgumentError(f"Error while parsing JSON: {error}") from None
    return message.SerializeToString(deterministic=True)


KERNELS = (KernelDef("DecodeJSONExample", decode_json_example),)
