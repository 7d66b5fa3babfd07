"""Lookup tables of both versions: initialize, find, insert, remove, import, export, errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

FILES = "tests/conformance/files/"  # relative to the root of the repository
STRING, INT64, INT32, FLOAT = DataType.STRING, DataType.INT64, DataType.INT32, DataType.FLOAT
WORDS = np.array(["a", "b"], object)


def i64(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def table_case(
    name: str,
    calls: Sequence[tuple[Any, ...]],
    op: str = "HashTableV2",
    key: DataType = STRING,
    value: DataType = INT64,
    inputs: Sequence[Any] = (),
    message: bool = True,
    **attrs: Any,
) -> Case:
    """Return a case with a step per call (op, *arguments, attrs?); the last node is `result`."""
    graph = Graph()
    if not op.startswith("Anonymous"):
        attrs.setdefault("shared_name", "table")
    table = graph.add(op, *inputs, name="table", key_dtype=key, value_dtype=value, **attrs)[0]
    steps = []
    for index, (call, *arguments) in enumerate(calls):
        options = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        node = "result" if index == len(calls) - 1 else f"call_{index}"
        outputs = graph.add(call, table, *arguments, name=node, **options)
        steps.append(Step({}, tuple(o for o, _ in outputs), () if outputs else (node,)))
    return Case(name, graph.graph_def, tuple(steps), message=message)


IMPORT = ("LookupTableImportV2", WORDS, i64(1, 2))
FIND = ("LookupTableFindV2", np.array([["b", "z"], ["", "a"]], object), np.int64(-1))
SIZE = ("LookupTableSizeV2",)
EXPORT = ("LookupTableExportV2", {"Tkeys": STRING, "Tvalues": INT64})
INSERT = ("LookupTableInsertV2", WORDS, i64(1, 2))
REMOVE = ("LookupTableRemoveV2", np.array(["a", "q"], object))

IMMUTABLE = (
    table_case("import_find", [SIZE, IMPORT, FIND, SIZE]),
    table_case(
        "import_again_as_many",
        [IMPORT, ("LookupTableImportV2", WORDS[[0, 0]], i64(5, 6)), FIND],
    ),
    table_case("import_again_fewer", [IMPORT, ("LookupTableImportV2", WORDS[:1], i64(1))]),
    table_case(
        "import_that_fails_stays",
        [
            ("LookupTableImportV2", WORDS[[0, 1, 0]], i64(1, 2, 3)),
            SIZE,
            ("LookupTableImportV2", WORDS[:1], i64(5)),
            ("LookupTableImportV2", np.array(["c"], object), i64(6)),
            FIND,
            SIZE,
        ],
    ),
    table_case("import_nothing", [("LookupTableImportV2", WORDS[:0], i64())]),
    table_case("export_unfilled", [("LookupTableExportV2", {"Tkeys": STRING, "Tvalues": STRING})]),
    # Only one entry, because TensorFlow exports in the order of its hashes.
    table_case("export", [("LookupTableImportV2", WORDS[:1], i64(1)), EXPORT]),
    table_case(
        "export_first_generation",
        [
            ("InitializeTable", WORDS[:1], i64(1)),
            ("LookupTableExport", {"Tkeys": STRING, "Tvalues": INT64}),
        ],
        op="HashTable",
    ),
    table_case("import_same_twice", [IMPORT, IMPORT, FIND]),
    table_case("import_as_many", [IMPORT, ("LookupTableImportV2", WORDS, i64(1, 3)), FIND]),
    table_case("import_fewer", [IMPORT, ("LookupTableImportV2", WORDS[:1], i64(1))]),
    table_case("import_duplicate", [("LookupTableImportV2", WORDS[[0, 0]], i64(1, 3))]),
    table_case("import_same_duplicate", [("LookupTableImportV2", WORDS[[0, 0]], i64(1, 1)), SIZE]),
    table_case("import_shapes", [("LookupTableImportV2", WORDS, i64(1))], message=False),
    table_case("import_types", [("LookupTableImportV2", WORDS, WORDS)]),
    table_case("find_first", [FIND]),
    table_case("export_first", [EXPORT]),
    table_case("insert", [IMPORT, INSERT]),
    table_case("remove", [IMPORT, REMOVE]),
    table_case("find_scalar", [IMPORT, ("LookupTableFindV2", "b", np.int64(-1))]),
    table_case("find_none", [IMPORT, ("LookupTableFindV2", WORDS[:0], np.int64(-1))]),
    table_case("find_types", [IMPORT, ("LookupTableFindV2", i64(1), np.int64(-1))]),
    table_case("default_a_key", [IMPORT, ("LookupTableFindV2", WORDS, i64(7, 8))]),
    table_case("default_shape", [IMPORT, ("LookupTableFindV2", WORDS, i64(7, 8, 9))]),
    table_case("initialize", [("InitializeTableV2", WORDS, i64(1, 2)), FIND]),
    table_case("private", [IMPORT, FIND], shared_name=""),
    table_case("node_name", [IMPORT, FIND], shared_name="", use_node_name_sharing=True),
    table_case("contained", [IMPORT, FIND], container="box"),
    table_case(
        "integers_to_strings",
        [
            ("LookupTableImportV2", i64(5, -1), WORDS),
            ("LookupTableFindV2", i64(-1, 5, 0), "UNK"),
        ],
        key=INT64,
        value=STRING,
    ),
    table_case(
        "integers_to_floats",
        [
            ("LookupTableImportV2", np.array([5, 6], np.int32), np.array([0.5, 1], np.float32)),
            ("LookupTableFindV2", np.array([6, 0], np.int32), np.float32(-1)),
        ],
        key=INT32,
        value=FLOAT,
    ),
    table_case(
        "first_generation",
        [
            ("InitializeTable", WORDS, i64(1, 2)),
            ("LookupTableFind", WORDS, np.int64(-1)),
            ("LookupTableSize",),
            ("LookupTableImport", WORDS, i64(1, 2)),
            ("LookupTableFind", i64(1), np.int64(-1)),
        ],
        op="HashTable",
    ),
)

MUTABLE = (
    table_case("mutable", [FIND, INSERT, FIND, SIZE, REMOVE, EXPORT], op="MutableHashTableV2"),
    table_case(
        "mutable_import",
        [
            INSERT,
            ("LookupTableImportV2", WORDS[:1], i64(9)),
            EXPORT,
            ("LookupTableFindV2", WORDS, i64(7, 8)),
        ],
        op="MutableHashTableV2",
    ),
    table_case(
        "mutable_replaced",
        [("LookupTableInsertV2", WORDS[[0, 1, 0]], i64(1, 2, 3)), FIND],
        op="MutableHashTableV2",
    ),
    table_case(
        "mutable_shapes", [("LookupTableInsertV2", WORDS, i64([1, 2]))], op="MutableHashTableV2"
    ),
    table_case("mutable_types", [("LookupTableRemoveV2", i64(1))], op="MutableHashTableV2"),
    table_case(
        "mutable_first_generation",
        [
            ("LookupTableInsert", WORDS, i64(1, 2)),
            ("LookupTableFind", WORDS, np.int64(-1)),
            ("LookupTableInsert", i64(1), i64(1)),
        ],
        op="MutableHashTable",
    ),
    table_case(
        "vectors",
        [
            ("LookupTableInsertV2", WORDS, i64([1, 2], [3, 4])),
            ("LookupTableFindV2", np.array(["a", "z"], object), i64(7, 8)),
            ("LookupTableFindV2", np.array(["a", "z"], object), i64([7, 8], [9, 9])),
            ("LookupTableFindV2", "b", i64(7, 8)),
            ("LookupTableFindV2", WORDS, np.int64(7)),
        ],
        op="MutableHashTableOfTensorsV2",
        value_shape=(2,),
    ),
    table_case(
        "vectors_first_generation",
        [
            ("LookupTableInsert", WORDS, i64([1, 2], [3, 4])),
            ("LookupTableFind", np.array(["a", "z"], object), i64(7, 8)),
        ],
        op="MutableHashTableOfTensors",
        value_shape=(2,),
    ),
    table_case(
        "vectors_insert_shape", [INSERT], op="MutableHashTableOfTensorsV2", value_shape=(2,)
    ),
    *(
        table_case(
            f"vectors_of_shape_{shape}",
            [SIZE],
            op="MutableHashTableOfTensorsV2",
            value_shape=shape,
            message=False,
        )
        for shape in ((), (2, 2), (-1,))
    ),
)


def dense_case(
    name: str, calls: Sequence[tuple[Any, ...]], empty: Any = 0, deleted: Any = -1, **attrs: Any
) -> Case:
    return table_case(
        f"dense_{name}",
        calls,
        op="MutableDenseHashTableV2",
        key=INT64,
        inputs=[np.array(empty, np.int64), np.array(deleted, np.int64)],
        **attrs,
    )


DENSE_INSERT = ("LookupTableInsertV2", i64(1, 2), i64(10, 20))
ROWS_INSERT = ("LookupTableInsertV2", i64([1, 2], [3, 4]), i64([10, 20], [30, 40]))
DENSE = (
    dense_case("find", [DENSE_INSERT, ("LookupTableFindV2", i64(1, 3), np.int64(-5)), SIZE]),
    dense_case("remove", [DENSE_INSERT, ("LookupTableRemoveV2", i64(1, 7)), SIZE]),
    *(
        dense_case(f"{op}_{key}", [(op, *arguments)])
        for key in (0, -1)
        for op, arguments in (
            ("LookupTableFindV2", (i64(key), np.int64(-5))),
            ("LookupTableInsertV2", (i64(key), i64(5))),
            ("LookupTableRemoveV2", (i64(key),)),
        )
    ),
    *(
        dense_case(f"{name}_of_vectors", [call])
        for name, call in (
            ("find", ("LookupTableFindV2", i64([1, 2], [3, 4]), np.int64(-5))),
            ("insert", ("LookupTableInsertV2", i64([1, 2], [3, 4]), i64([1, 2], [3, 4]))),
            ("remove", ("LookupTableRemoveV2", i64([1, 2], [3, 4]))),
        )
    ),
    dense_case("equal_keys", [SIZE], deleted=0, message=False),
    dense_case("key_shapes", [SIZE], deleted=[0], message=False),
    dense_case("buckets", [SIZE], initial_num_buckets=3, message=False),
    dense_case("load_factor", [SIZE], max_load_factor=1.5, message=False),
    dense_case(
        "rows",
        [ROWS_INSERT, ("LookupTableFindV2", i64([1, 2], [0, 3]), i64(-5, -6)), SIZE],
        empty=[0, 0],
        deleted=[-1, 0],
        value_shape=(2,),
    ),
    dense_case(
        "rows_key_shape",
        [ROWS_INSERT, ("LookupTableFindV2", i64(1, 2, 3), i64(-5, -6))],
        empty=[0, 0],
        deleted=[-1, 0],
        value_shape=(2,),
    ),
    dense_case(
        "rows_value_shape",
        [("LookupTableInsertV2", i64([1, 2], [3, 4]), i64([10, 20]))],
        empty=[0, 0],
        deleted=[-1, 0],
        value_shape=(2,),
    ),
)


def anonymous_case(op: str, inputs: Sequence[Any], value_shape: Any = None) -> Case:
    graph = Graph()
    attrs = {} if value_shape is None else {"value_shape": value_shape}
    table = graph.add(op, *inputs, key_dtype=INT64, value_dtype=INT64, **attrs)[0]
    size = graph.add("LookupTableSizeV2", table)[0]
    return Case(op, graph.graph_def, (Step({}, (size[0],)),))


ANONYMOUS = (
    anonymous_case("AnonymousHashTable", []),
    anonymous_case("AnonymousMutableHashTable", []),
    anonymous_case("AnonymousMutableHashTableOfTensors", [], (2,)),
    anonymous_case("AnonymousMutableDenseHashTable", [np.int64(0), np.int64(-1)], ()),
)


def file_case(
    name: str,
    key_index: int,
    value_index: int,
    key: DataType = STRING,
    value: DataType = INT64,
    file: Any = "vocabulary.txt",
    op: str = "V2",
    **attrs: Any,
) -> Case:
    attrs.setdefault("delimiter", " ")
    path = FILES + file if isinstance(file, str) else np.array(file, object)
    keys: Any = np.array(["apple", "banana 2", "z", "3"], object)
    keys = keys if key is STRING else i64(0, 1, 2, 3)
    default: Any = "none" if value is STRING else np.array(-1, value.numpy)
    initialize = (
        f"InitializeTableFromTextFile{op}",
        path,
        {"key_index": key_index, "value_index": value_index, **attrs},
    )
    calls = [initialize]
    if not name.startswith("bad"):
        calls.append((f"LookupTableFind{op}", keys, default))
    return table_case(f"file_{name}", calls, op=f"HashTable{op}", key=key, value=value)


WHOLE, LINE = -2, -1
FROM_FILES = (
    file_case("columns", 0, 1),
    file_case("columns_first_generation", 0, 1, op=""),
    file_case("whole_line", WHOLE, LINE),
    file_case("line_number", LINE, WHOLE, key=INT64, value=STRING),
    file_case("backwards", 1, 0, key=INT64, value=STRING),
    file_case("offset", 0, LINE, offset=10),
    file_case("vocab_size", 0, 1, vocab_size=2),
    file_case("to_floats", 0, 1, value=FLOAT),
    file_case("bad_vocab_size", 0, 1, vocab_size=5),
    file_case("bad_no_lines", WHOLE, LINE, vocab_size=0),
    file_case("bad_columns", 0, 2),
    file_case("bad_key_type", LINE, 0),
    file_case("bad_value_type", 0, WHOLE),
    file_case("bad_number", WHOLE, 0),
    file_case("bad_empty_line", WHOLE, LINE, file="with_empty_line.txt"),
    file_case("bad_duplicate", WHOLE, LINE, file="with_duplicate.txt"),
    file_case("bad_empty", WHOLE, LINE, file="empty.txt"),
    file_case("bad_missing", WHOLE, LINE, file="missing.txt"),
    file_case("bad_delimiter", 0, 1, delimiter="ab"),
)

CASES = (*IMMUTABLE, *MUTABLE, *DENSE, *ANONYMOUS, *FROM_FILES)
