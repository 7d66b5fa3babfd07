"""Datasets of the records of CSV files: rules of quotes, columns, defaults, errors and headers.

The cases write small files under /tmp, each with its own name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case
from tests.conformance.cases.data.datasets import DatasetGraph, iterated

FILES = "tests/conformance/files/"
PREFIX = "/tmp/runstep-conformance-csv-"
F32, F64, I32, I64, STRING = (
    DataType.FLOAT,
    DataType.DOUBLE,
    DataType.INT32,
    DataType.INT64,
    DataType.STRING,
)
_DEFAULTS = {STRING: b"none", F32: 0.5, F64: -0.5, I32: 7, I64: -7}


@dataclasses.dataclass(frozen=True)
class Table:
    """The arguments of one dataset; a type in `required` has no default."""

    text: bytes = b""
    types: Sequence[DataType] = (STRING, STRING)
    required: Sequence[int] = ()
    delimiter: str = ","
    quotes: bool = True
    missing: str = ""
    header: bool = False
    select: Any = ()
    exclude: Any = ()
    compression: str = ""
    buffer_size: int = 4096
    files: Sequence[str] = ()
    defaults: Any = None


def _text(value: str | bytes) -> np.ndarray:
    return np.array(value if isinstance(value, bytes) else value.encode(), object)


def _default(kind: DataType, has_one: bool) -> np.ndarray:
    return np.array([_DEFAULTS[kind]] if has_one else [], kind.numpy)


def _unknown(g: DatasetGraph, value: np.ndarray) -> Any:
    return g.add("PlaceholderWithDefault", value, shape=None)[0]


def _case(name: str, table: Table, op: str = "CSVDatasetV2", count: int = 5) -> Case:
    def build(g: DatasetGraph) -> Any:
        g.types, g.shapes = tuple(table.types), ((),) * len(table.types)
        names = table.files or (PREFIX + name,)
        listed = np.empty(len(names), object)
        listed[:] = [each.encode() for each in names]
        if table.files:
            filenames = g.add("Identity", listed)[0]
        else:
            g.add("WriteFile", _text(names[0]), _text(table.text), name="write")
            filenames = g.add("Identity", listed, control=("write",))[0]
        defaults = [
            _default(kind, index not in table.required) for index, kind in enumerate(table.types)
        ]
        # of unknown shape, so that the kernel, not shape inference, checks them
        columns = [
            _unknown(g, np.array(table.select, np.int64)),
            [_unknown(g, each) for each in table.defaults or defaults],
        ]
        if op == "CSVDatasetV2":
            columns.append(_unknown(g, np.array(table.exclude, np.int64)))
        return g.data(
            op, filenames, _text(table.compression), g.long(table.buffer_size),
            np.bool_(table.header), _text(table.delimiter), np.bool_(table.quotes),
            _text(table.missing), *columns,
        )  # fmt: skip

    return iterated(name, build, count)


_QUOTES = {
    "quoted": b'"a","b"\n"a ""b""","c\r\nd,e"\n"",""',
    "line_ends": b"a,b\r\nc,d\re,f\n\n\r\ng,h",
    "no_quote_at_end": b'a,b\n"c,d\ne,f\n',
    "quote_in_field": b'a"b,c"\nd,e\n"f",g h"\ni,j',
    "text_after_quote": b'"a"b",c\nd,e\n"f"g"\n"h",i',
    "few_and_many": b"a\na,b,c\n,\na,\nb,c",
    "many_and_bad": b'a,b,c,x"y\nd,e',
    "empty": b"",
    "only_line_end": b"\n",
}
_NUMBERS = b"1,2,3.5,4.5\n 6 ,,1e400,-inf\nx,1,1,1\n9999999999,1,1,1\n1,99999999999999999999,1,1\n"
_MORE_NUMBERS = b"+5,-6,nan,0x1p3\n1.0,1,1,1\n1,NA,NA,NA\nNA,1,,\n1,2,3\n1,2,3,4,5"
_WIDE = b'a,b,c\nd,e\n"f"x,g,h"\ni,j,k,l\nm'
_BAD_ARGUMENTS = {
    "no_delimiter": Table(delimiter=""),
    "two_delimiters": Table(delimiter=",;"),
    "no_buffer": Table(buffer_size=0),
    "select_too_few": Table(select=(1,)),
    "select_falling": Table(select=(1, 1)),
    "select_negative": Table(select=(-1, 1)),
    "select_matrix": Table(select=((0, 1),)),
    "exclude_falling": Table(exclude=(1, 0)),
    "exclude_negative": Table(exclude=(-1,)),
    "exclude_matrix": Table(exclude=((1,),)),
    "select_and_exclude": Table(select=(0, 1), exclude=(2,)),
    "unknown_compression": Table(compression="BZ2"),
    "two_defaults": Table(defaults=[_text(b"a").reshape(1), np.array([b"a", b"b"], object)]),
    "matrix_default": Table(defaults=[np.array([[b"a"]], object), _text(b"a").reshape(1)]),
}

CASES = (
    *(_case(name, Table(text), count=7) for name, text in _QUOTES.items()),
    *(
        _case(f"{name}_in_blocks_of_{size}", Table(_QUOTES[name], buffer_size=size), count=7)
        for name in ("quoted", "line_ends")
        for size in (1, 3)
    ),
    _case("no_quotes", Table(b'"a,b"\nc"d,"e"', quotes=False)),
    *(
        _case(f"delimiter_{ord(each)}_{int(quotes)}", Table(text, delimiter=each, quotes=quotes))
        for each, text in (
            (";", b'a;b\n"c;d";e'),
            ("\t", b"a\tb\n\t\n"),
            ("\n", b'a\nb\r\n"c"\n\rd'),
            ("\r", b'a\rb\n"c\r"\r\nd'),
            ('"', b'a"b\n"c"""d"\n'),
        )
        for quotes in (True, False)
    ),
    _case("numbers", Table(_NUMBERS, (I32, I64, F32, F64)), count=6),
    _case("more_numbers", Table(_MORE_NUMBERS, (I32, I64, F32, F64), missing="NA"), count=7),
    _case("required", Table(_MORE_NUMBERS, (I32, I64, F32, F64), (0, 2), missing="NA"), count=7),
    _case("missing", Table(b'NA,"NA"\nnA,\n', (STRING, STRING), (1,), missing="NA")),
    _case("header", Table(b"a,b\nc,d", header=True)),
    _case("bad_header", Table(b'a"b\nc,d', header=True)),
    _case("no_header", Table(b"", header=True)),
    _case("select", Table(_WIDE, (STRING, STRING), select=(0, 2)), count=6),
    _case("select_far", Table(_WIDE, (STRING,), select=(9,)), count=6),
    _case("exclude", Table(_WIDE, (STRING, STRING), exclude=(1,)), count=6),
    _case("exclude_all", Table(_WIDE, (STRING,), exclude=(0, 1, 7)), count=6),
    *(
        _case(
            f"file_{suffix}",
            Table(
                types=(STRING, I64, F32), header=True, compression=compression,
                files=(f"{FILES}table.csv{suffix}",) * 2,
            ),
            count=7,
        )
        for suffix, compression in (("", ""), (".gz", "GZIP"), (".zz", "ZLIB"))
    ),
    *(
        _case(f"version_{op}", Table(b"a,1\n,", (STRING, I32), select=(0, 1)), op)
        for op in ("CSVDataset", "ExperimentalCSVDataset")
    ),
    *(_case(name, table, count=1) for name, table in _BAD_ARGUMENTS.items()),
)  # fmt: skip
