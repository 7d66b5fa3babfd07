"""Export of loaded SavedModels, with their variables or frozen."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from runtime.api import (
    AlreadyExistsError,
    NotFoundError,
    SessionOptions,
    UnimplementedError,
    export_bundle,
    load_saved_model,
)
from tests.saved_model_corpus import (
    FIXTURES,
    fixture_names,
    read_calls,
    relative_difference,
    run_call,
)

_TOLERANCE = 1e-4  # relative to the largest expected magnitude
_ASSIGN_IN_A_SIGNATURE = ("counter", "counter_tf2")


def load(folder):
    return load_saved_model(SessionOptions(), None, str(folder), {"serve"})


def export(name, folder, freeze=False):
    out = folder / name
    export_bundle(load(FIXTURES / name), str(out), freeze)
    return load(out)


def check_recorded_calls(bundle, name):
    for call in read_calls(FIXTURES / name):
        got = run_call(bundle, call)
        for key, expected in call.outputs.items():
            assert relative_difference(got[key], expected) < _TOLERANCE, key


@pytest.mark.parametrize("name", fixture_names())
def test_a_model_written_again_answers_the_same(name, tmp_path):
    check_recorded_calls(export(name, tmp_path), name)


@pytest.mark.parametrize(
    "name", [name for name in fixture_names() if name not in _ASSIGN_IN_A_SIGNATURE]
)
def test_a_frozen_model_has_no_variables_and_answers_the_same(name, tmp_path):
    bundle = export(name, tmp_path, freeze=True)
    assert not (tmp_path / name / "variables").exists()
    assert not bundle.meta_graph_def.saver_def.restore_op_name
    check_recorded_calls(bundle, name)


@pytest.mark.parametrize("name", _ASSIGN_IN_A_SIGNATURE)
def test_variables_that_signatures_assign_can_not_be_frozen(name, tmp_path):
    with pytest.raises(UnimplementedError, match="Can't freeze"):
        export(name, tmp_path, freeze=True)


@pytest.mark.parametrize(
    ("name", "feeds", "output"),
    [
        ("counter", {}, "AssignAdd:0"),
        ("counter_tf2", {"add_delta:0": np.int64(1)}, "StatefulPartitionedCall:0"),
    ],
)
def test_variables_are_written_as_they_are_now(name, feeds, output, tmp_path):
    bundle = load(FIXTURES / name)
    before = bundle.session.run(feeds, [output])[0]
    export_bundle(bundle, str(tmp_path / "again"))
    again = load(tmp_path / "again")
    assert again.session.run(feeds, [output])[0] == before + 1


def test_assets_come_along(tmp_path):
    bundle = export("asset_table", tmp_path)
    assert os.listdir(tmp_path / "asset_table" / "assets") == os.listdir(
        FIXTURES / "asset_table" / "assets"
    )
    assert all(str(tmp_path) in path.item().decode() for path in bundle.asset_feeds.values())


def test_a_folder_that_has_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(AlreadyExistsError, match="Export directory already exists, and isn't"):
        export_bundle(load(FIXTURES / "half_plus_two"), str(tmp_path))
    assert os.listdir(tmp_path) == ["mine"]


def test_a_missing_asset_leaves_no_model(tmp_path):
    shutil.copytree(FIXTURES / "asset_table", tmp_path / "broken")
    bundle = load(tmp_path / "broken")
    shutil.rmtree(tmp_path / "broken" / "assets")
    with pytest.raises(NotFoundError, match="No such file or directory"):
        export_bundle(bundle, str(tmp_path / "out"))
    assert not (tmp_path / "out" / "saved_model.pb").exists()
