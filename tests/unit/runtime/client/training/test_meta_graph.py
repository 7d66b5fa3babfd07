"""Export and import of MetaGraphDefs."""

from __future__ import annotations

import pytest

from runtime.api import DataLossError, NotFoundError
from runtime.client import (
    Graph,
    Session,
    Variable,
    add_to_collection,
    export_meta_graph,
    float32,
    get_collection,
    global_variables,
    global_variables_initializer,
    import_meta_graph,
    placeholder,
)


def test_meta_graphs_carry_collections(graph, tmp_path):
    x = placeholder(float32, [2], name="x")
    variable = Variable([1.0, 2.0], name="v")
    reference = Variable([3.0, 4.0], name="r", use_resource=False)
    total = x + variable + reference
    for key, value in (("out", total), ("text", "hello"), ("numbers", 3), ("sizes", 0.5)):
        add_to_collection(key, value)
    add_to_collection("objects", object())
    initializer = global_variables_initializer().name
    path = str(tmp_path / "graph.meta")
    written = export_meta_graph(path, tags=["serve"])
    assert "objects" not in written.collection_def
    with Graph().as_default(), Session() as session:
        import_meta_graph(path, import_scope="copy")
        assert [each.name for each in global_variables()] == ["copy/v:0", "copy/r:0"]
        assert get_collection("trainable_variables") == global_variables()
        assert [get_collection(key) for key in ("text", "numbers", "sizes")] == [
            [b"hello"],
            [3],
            [0.5],
        ]
        session.run(f"copy/{initializer}")
        assert session.run(get_collection("out")[0], {"copy/x:0": [1, 1]}).tolist() == [5, 7]
        assert session.run(global_variables()[0].assign([0, 0])).tolist() == [0, 0]


def test_files_that_are_no_meta_graphs(graph, tmp_path):
    with pytest.raises(NotFoundError, match="No such file or directory"):
        import_meta_graph(str(tmp_path / "missing"))
    (tmp_path / "broken").write_bytes(b"\xff\xff")
    with pytest.raises(DataLossError, match=r"Can't parse .*broken as a MetaGraphDef"):
        import_meta_graph(str(tmp_path / "broken"))
