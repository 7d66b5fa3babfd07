"""Fields of serialized messages: DecodeProtoV2 and EncodeProto."""

import struct
from typing import Any

import numpy as np
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from runtime.framework.dtypes import DataType, from_numpy
from tests.conformance.case import Case, as_tensor, case

# (name, number, type of the field, element types, default)
SINGLE: tuple[tuple[str, int, str, tuple[str, ...], str], ...] = (
    ("d", 1, "DOUBLE", ("DOUBLE",), "-0.5"), ("f", 2, "FLOAT", ("FLOAT", "DOUBLE"), "2.5"),
    ("i64", 3, "INT64", ("INT64",), "-7"),
    ("u64", 4, "UINT64", ("UINT64",), "18446744073709551615"),
    ("i32", 5, "INT32", ("INT32", "INT64"), "-9"), ("f64", 6, "FIXED64", ("UINT64",), ""),
    ("f32", 7, "FIXED32", ("UINT32", "UINT64"), "4294967295"), ("b", 8, "BOOL", ("BOOL",), "true"),
    ("s", 9, "STRING", ("STRING",), "h\u00e9\0x"), ("g", 10, "GROUP", ("STRING",), ""),
    ("m", 11, "MESSAGE", ("STRING",), ""), ("by", 12, "BYTES", ("STRING",), "a\\000b\\377"),
    ("u32", 13, "UINT32", ("UINT32", "UINT64"), "4000000000"),
    ("e", 14, "ENUM", ("INT32",), "BLUE"),
    ("sf32", 15, "SFIXED32", ("INT32", "INT64"), ""), ("sf64", 16, "SFIXED64", ("INT64",), ""),
    ("si32", 17, "SINT32", ("INT32", "INT64"), "-3"), ("si64", 18, "SINT64", ("INT64",), ""),
)  # fmt: skip
NUMBERS = tuple(each for each in SINGLE if each[2] not in ("STRING", "BYTES", "MESSAGE", "GROUP"))
TYPES = {name: kinds for name, _, _, kinds, _ in SINGLE}
NUMBER_OF = {name: number for name, number, *_ in SINGLE}
REFERENCES = {"GROUP": ".shop.Order.G", "MESSAGE": ".shop.Inner", "ENUM": ".shop.Color"}


def field(
    name: str, number: int, kind: str, label: str = "OPTIONAL", default: str = "", **more: Any
) -> FieldDescriptorProto:
    made = FieldDescriptorProto(
        name=name, number=number, type=f"TYPE_{kind}", label=f"LABEL_{label}",
        type_name=REFERENCES.get(kind), **more,
    )  # fmt: skip
    if default:
        made.default_value = default
    return made


def descriptors() -> bytes:
    order = DescriptorProto(
        name="Order",
        field=[
            *(field(name, number, kind, default=text) for name, number, kind, _, text in SINGLE),
            *(field(f"r{name}", 20 + number, kind, "REPEATED")
              for name, number, kind, _, _ in SINGLE if kind != "GROUP"),
            *(field(f"p{name}", 40 + number, kind, "REPEATED", options={"packed": True})
              for name, number, kind, _, _ in NUMBERS),
        ],
        nested_type=[DescriptorProto(name="G", field=[field("x", 1, "INT32")])],
        extension_range=[DescriptorProto.ExtensionRange(start=100, end=200)],
    )  # fmt: skip
    shop = FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto2",
        message_type=[
            order,
            DescriptorProto(name="Inner", field=[field("a", 1, "INT32"), field("b", 2, "STRING")]),
            DescriptorProto(name="Strict", field=[field("must", 1, "INT32", "REQUIRED")]),
        ],
        enum_type=[EnumDescriptorProto(name="Color", value=[
            EnumValueDescriptorProto(name=name, number=number)
            for name, number in (("RED", 0), ("GREEN", 5), ("BLUE", -2))])],
        extension=[field("ext", 100, "INT32", extendee=".shop.Order")],
    )  # fmt: skip
    third = FileDescriptorProto(
        name="third.proto", package="third", syntax="proto3",
        message_type=[DescriptorProto(name="P", field=[
            field("r", 1, "INT32", "REPEATED"), field("x", 2, "INT32"),
            field("f", 3, "FLOAT", "REPEATED", options={"packed": False})])],
    )  # fmt: skip
    files = FileDescriptorSet(file=[shop, third])
    return files.SerializeToString(deterministic=True)


SOURCE = b"bytes://" + descriptors()
I32, I64, STRING = DataType.INT32, DataType.INT64, DataType.STRING


def varint(value: int) -> bytes:
    value, result = value & (1 << 64) - 1, b""
    while value > 127:
        result, value = result + bytes([value & 127 | 128]), value >> 7
    return result + bytes([value])


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def delimited(number: int, data: bytes) -> bytes:
    return tag(number, 2) + varint(len(data)) + data


def decode(
    data: Any, names: list[str], types: list[DataType], message: str = "shop.Order", **attrs: Any
) -> Case:
    attrs = {"descriptor_source": SOURCE, "message": True, **attrs}
    strings = np.empty(np.shape(data), object)
    strings[...] = data
    return case(
        "DecodeProtoV2", strings, message_type=message, field_names=names, output_types=types,
        **attrs,
    )  # fmt: skip


VARINTS = (0, 1, 5, 127, 300, -1, -5, 1 << 31, 1 << 40, (1 << 63) + 3)
WIRE = {"DOUBLE": (1, struct.pack("<d", -2.25)), "FLOAT": (5, struct.pack("<f", 1.1)),
        "FIXED64": (1, b"\xff" * 7 + b"\x80"), "FIXED32": (5, b"\xfe\xff\xff\xff"),
        "SFIXED64": (1, b"\xff" * 7 + b"\x80"), "SFIXED32": (5, b"\xfe\xff\xff\xff")}  # fmt: skip


def numbers(kind: str) -> list[bytes]:
    """Return numbers as a field of this type has them on the wire, without their tags."""
    return [WIRE[kind][1], b"\0" * len(WIRE[kind][1])] if kind in WIRE else [*map(varint, VARINTS)]


def all_kinds(packed: bool) -> list[Case]:
    """Return messages with several numbers in each field, in each element type."""
    made = []
    for name, number, kind, types, _ in NUMBERS:
        items = numbers(kind)
        wire = WIRE[kind][0] if kind in WIRE else 0
        longer, shorter = (
            delimited(40 + number, b"".join(some))
            if packed
            else b"".join(tag(20 + number, wire) + each for each in some)
            for some in (items, items[:1])
        )
        made += [
            decode([longer, b"", shorter], [f"{'p' if packed else 'r'}{name}"], [DataType[each]])
            for each in types
        ]
    return made


LONG = b"\x80" * 6
GROUP = tag(10, 3) + tag(1, 0) + varint(5) + tag(2, 2) + b"\1z" + tag(10, 4)
DAMAGED: tuple[bytes, ...] = (
    b"\0", b"\1", tag(3, 4), tag(3, 6), tag(3, 0), tag(9, 2) + b"\5a", tag(99, 2) + b"\x09",
    delimited(41, b"1234567"), delimited(45, b"\x80\x80"), tag(3, 0) + b"\xff" * 10 + b"\1",
    tag(45, 2) + varint(1 << 31), tag(45, 2) + varint(9), tag(10, 3) + tag(1, 0) + b"\5",
    tag(10, 3) + tag(11, 4), tag(77, 3) * 101 + tag(77, 4) * 101, b"\x80",
    delimited(45, b"\3") + delimited(45, b""), tag(5, 0) + b"\x09" + delimited(5, b"\3"),
    tag(10, 3) * 101 + tag(10, 4) * 101, tag(30, 2) + b"\7ab", b"\xff" * 11,
    delimited(45, b"\xff" * 10 + b"\1"),
)  # fmt: skip
NAMES = ["i64", "s", "pd", "pi32", "b", "u32", "g", "i32"]
KINDS = [I64, STRING, DataType.DOUBLE, I32, DataType.BOOL, DataType.UINT32, STRING, I32]
ODD: tuple[bytes, ...] = (
    b"", tag(3, 5) + b"aaaa", tag(9, 0) + b"\3", b"\x98" + LONG + b"\0\5",
    tag(3, 0) + b"\xff" * 9 + b"\x7f", tag(8, 0) + varint(256), tag(8, 0) + varint(1 << 40),
    tag(13, 0) + varint(1 << 40 | 7), GROUP, tag(77, 3) * 100 + tag(77, 4) * 100,
    tag(5, 0) + b"\x09" + tag(5, 0) + b"\x0a", delimited(5, b"\3\4"),
    delimited(5, b"\3\4") + tag(5, 0) + b"\x09", delimited(45, b"") + delimited(45, b"\3"),
    delimited(45, b"\1\2") + tag(45, 0) + b"\3" + delimited(45, b"\4"),
    tag(3, 0) + b"\1" + tag(13, 0) + b"\2" + tag(3, 0) + b"\3" + delimited(9, b"q"),
    delimited(10, b"a"),
)  # fmt: skip
TEXT = b"""i32: 7  # a comment
ri32: [1, 2]
rm { a: 3 } rm { b: "\\303\\251" }
g { x: 4 } e: GREEN"""
BAD: tuple[dict[str, Any], ...] = (
    {"names": ["nope"]}, {"types": [STRING]}, {"message": "shop.Nope"}, {"message": "shop.Color"},
    {"descriptor_source": "local://"}, {"descriptor_source": ""}, {"types": [I32, I32]},
    {"descriptor_source": "/nonexistent"}, {"descriptor_source": b"bytes://\x07x"},
    {"message_format": "json"}, {"names": ["ext"]}, {"data": []},
)  # fmt: skip


def bad(**changes: Any) -> Case:
    options = {"data": [b""], "names": ["i32"], "types": [I32], "message": "shop.Order", **changes}
    return decode(**options)


def encode(sizes: Any, values: dict[str, Any], message: str = "shop.Order", **attrs: Any) -> Case:
    arrays = [as_tensor(each) for each in values.values()]
    attrs = {"descriptor_source": SOURCE, "message": True, **attrs}
    return case(
        "EncodeProto", np.asarray(sizes, np.int32), arrays, message_type=message,
        field_names=list(values), Tinput_types=[from_numpy(each.dtype) for each in arrays],
        **attrs,
    )  # fmt: skip


def encoded_numbers(prefix: str) -> list[Case]:
    rows = [[0, 1, -2], [300, (1 << 31) - 1, -(1 << 31)]]
    made = []
    for name, _, _, types, _ in NUMBERS:
        for each in types:
            dtype = DataType[each].numpy
            values = np.array(rows, np.int64).astype(dtype)
            sizes = [[1], [0]] if not prefix else [[3], [2]]
            made.append(encode(sizes, {f"{prefix}{name}": values}))
    return made


PAIR = np.array([[1, 2], [3, 4]], np.int32)
WORDS = np.array([[b"a", b"\xff\0"], [b"", b"ccc"]], object)

CASES = (
    decode([b""], [name for name, *_ in SINGLE], [DataType[TYPES[name][0]] for name in TYPES]),
    decode([b""], [name for name in TYPES if len(TYPES[name]) > 1],
           [DataType[kinds[1]] for kinds in TYPES.values() if len(kinds) > 1]),
    *all_kinds(packed=False),
    *all_kinds(packed=True),
    *(decode([data], NAMES, KINDS) for data in (*ODD, *DAMAGED)),
    decode([ODD[-2], b"", ODD[-3]], ["pi32", "i64", "s"], [I64, I64, STRING]),
    decode([[delimited(29, b"a") + delimited(29, b"bc"), b""], [delimited(29, b""), b""]],
           ["rs", "s"], [STRING, STRING]),
    decode(b"", ["ri32"], [I32]), decode([b"", tag(3, 0) + b"\1"], [], []), decode([b"a"], [], []),
    decode([delimited(31, b"\x08\3") * 3], ["rm"], [STRING]),
    decode([tag(100, 0) + b"\3", b""], ["shop.ext", "i32"], [I32, I32]),
    decode([tag(5, 0) + b"\x09"], ["i32", "i32"], [I32, I32]),
    decode([b"", delimited(1, b"\1\2")], ["r", "x"], [I32, I32], "third.P"),
    *(bad(**each) for each in BAD),
    *(decode([text], ["i32", "rm", "ri32", "g", "e"], [I32, STRING, I32, STRING, I32],
             message_format="text")
      for text in (TEXT, b"", b"nope: 3", b"i32: 99999999999", b"g {")),
    *(decode([data], ["i32"], [I32], sanitize=True)
      for data in (b"", tag(5, 0) + b"\x09" + tag(5, 0) + b"\x0a" + tag(99, 0) + b"\1", tag(5, 0))),
    decode([b""], ["must"], [I32], "shop.Strict", sanitize=True),
    decode([b""], ["must"], [I32], "shop.Strict", message_format="text"),
    decode([b""], ["must"], [I32], "shop.Strict"),
    *(decode([b"\x0a\0", b""], [name], [kind], message, descriptor_source="local://")
      for message, name, kind in (
          ("tensorflow.Example", "features", STRING), ("tensorflow.GraphDef", "node", STRING),
          ("google.protobuf.Any", "type_url", STRING),
          ("tensorflow.TensorShapeProto", "dim", STRING),
          ("google.protobuf.Duration", "nanos", I32))),
    *encoded_numbers(""), *encoded_numbers("r"), *encoded_numbers("p"),
    encode([[2, 2], [1, 0]], {"rs": WORDS, "ri32": PAIR}),
    encode([[1, 1, 1], [0, 1, 1]], {"m": WORDS, "g": WORDS, "by": WORDS}),
    encode([[[1], [2]]], {"rm": WORDS[np.newaxis]}), encode([[0], [0]], {"pi32": PAIR}),
    encode([[2, 1], [1, 1]], {"r": PAIR, "x": PAIR}, "third.P"),
    encode([[3], [1]], {"ri32": PAIR}), encode([[1]], {"ri32": PAIR}),
    encode([[1, 1], [1, 1]], {"ri32": PAIR, "rs": WORDS[:1]}), encode([1], {"i32": PAIR[0]}),
    encode([[1], [1]], {"rs": PAIR}), encode([[1], [1]], {"ri64": PAIR}),
    encode([[1], [1]], {"nope": PAIR}), encode([[1], [1]], {"i32": PAIR}, "shop.Nope"),
    encode([[1], [1]], {"shop.ext": PAIR}), encode([[-1], [1]], {"ri32": PAIR}),
    encode([[1], [1]], {"i32": PAIR}, descriptor_source=b"bytes://\x07x"),
    encode(np.zeros((0, 1)), {"i32": PAIR[:0]}), encode([[0], [0]], {"i32": PAIR[:, :0]}),
)  # fmt: skip
