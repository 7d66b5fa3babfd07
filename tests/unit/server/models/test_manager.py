from __future__ import annotations

import errno
import json
import logging
import shutil
import weakref
from pathlib import Path

import pytest

from runtime.foundation.errors import (
    DataLossError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)
from server.models.example_signatures import regress_outputs
from server.models.load_metrics import LoadMetrics
from server.models.manager import ModelManager
from server.models.manager_options import ManagerOptions
from server.models.model_config import ModelConfig
from server.models.version_policy import AllVersions, LatestVersions, SpecificVersions
from server.models.version_states import ModelState
from server.rest.model_information import write_model_list
from server.settings import RequestLogSettings
from server.tensorflow_metrics import tensorflow_text
from tests.unit.server.models.fakes import FakeLoader, HandPool, make_versions


class House:
    """A manager with everything around it in the test's hands."""

    def __init__(self, base: Path, *configs: ModelConfig, **options: object) -> None:
        self.base = base
        self.pool = HandPool()
        self.loader = FakeLoader()
        self.now = 0.0
        self.manager = ModelManager(
            configs or [ModelConfig("m", str(base))],
            self.loader,
            self.pool,
            ManagerOptions(**options),  # type: ignore[arg-type]
            clock=lambda: self.now,
        )

    def settle(self) -> None:
        self.manager.poll()
        self.pool.run_all()

    def states(self, name: str = "m") -> dict[int, str]:
        return {s.version: s.state.value for s in self.manager.statuses(name)}


def test_the_latest_version_serves(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1, "00000012", 3, "notes"))
    house.settle()
    assert house.loader.loads == [("m", 12)]
    assert house.manager.find("m").version == 12
    assert house.manager.find("m", 12).name == "m"
    assert house.states() == {12: "AVAILABLE"}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (LatestVersions(2), {2, 3}),
        (LatestVersions(0), {3}),
        (AllVersions(), {1, 2, 3}),
        (SpecificVersions((1, 9)), {1}),
    ],
)
def test_policies(tmp_path: Path, policy: LatestVersions, expected: set[int]) -> None:
    house = House(tmp_path, ModelConfig("m", str(make_versions(tmp_path, 1, 2, 3)), policy))
    house.settle()
    assert set(house.states()) == expected


def test_a_new_version_takes_over_only_once_it_serves(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.settle()
    make_versions(tmp_path, 2)
    house.manager.poll()
    assert house.states() == {2: "LOADING", 1: "AVAILABLE"}
    assert house.manager.find("m").version == 1
    house.pool.run_all()
    assert house.manager.find("m").version == 2
    assert house.states() == {2: "AVAILABLE", 1: "END"}
    assert house.loader.bundles[1].session.is_closed


def test_to_remove_a_version_while_it_is_loaded_is_no_error_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(make_versions(tmp_path, 1, 2), max_load_retries=0)
    house.loader.failures[2] = [DataLossError("no such file")]
    house.manager.poll()
    shutil.rmtree(tmp_path / "2")
    house.pool.run_all()
    (failed,) = (each for each in caplog.records if "no such file" in each.getMessage())
    assert failed.levelno == logging.WARNING


def test_a_failed_load_leaves_the_old_version_serving(tmp_path: Path) -> None:
    metrics = LoadMetrics()
    house = House(make_versions(tmp_path, 1), max_load_retries=1, metrics=metrics)
    house.settle()
    house.loader.failures[2] = [DataLossError("broken"), DataLossError("still broken")]
    make_versions(tmp_path, 2)
    house.settle()
    assert house.states() == {2: "LOADING", 1: "AVAILABLE"}
    house.manager.retry_due_loads()
    assert not house.pool.tasks  # not yet
    house.now = 60
    house.manager.retry_due_loads()
    house.pool.run_all()
    failed = house.manager.statuses("m", 2)[0]
    assert failed.state is ModelState.END
    assert isinstance(failed.error, DataLossError)
    assert failed.error.message == "still broken"
    assert house.manager.find("m").version == 1
    house.settle()  # a version that failed is not tried for ever
    assert house.loader.loads.count(("m", 2)) == 2
    attempts = tensorflow_text(metrics.collect())
    for version, status, count in ((1, "success", 1), (2, "fail", 2)):
        labels = f'model_path="{tmp_path / str(version)}",status="{status}"'
        assert f"load_attempt_count{{{labels}}} {count}\n" in attempts


def test_a_retry_can_succeed(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.loader.failures[1] = [DataLossError("half copied")]
    house.settle()
    assert house.manager.next_retry_at() == 60
    assert house.manager.not_ready() == ["m"]
    house.now = 60
    house.manager.retry_due_loads()
    house.pool.run_all()
    assert house.manager.not_ready() == []
    assert house.manager.statuses("m")[0].error is None


def test_an_unexpected_exception_is_an_internal_error(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1), max_load_retries=0)
    house.loader.failures[1] = [KeyError("x")]
    house.settle()
    error = house.manager.statuses("m")[0].error
    assert error is not None
    assert error.message == "KeyError: 'x'"


def test_a_version_is_closed_when_its_last_request_ends(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.settle()
    used = house.manager.acquire("m")
    shutil.rmtree(tmp_path / "1")
    make_versions(tmp_path, 2)
    house.settle()
    assert house.states() == {2: "AVAILABLE", 1: "UNLOADING"}
    assert not used.acquire()
    assert not house.loader.bundles[1].session.is_closed
    used.release()
    house.pool.run_all()
    assert house.loader.bundles[1].session.is_closed
    assert house.states() == {2: "AVAILABLE", 1: "END"}
    with pytest.raises(UnavailableError, match="has been unloaded"):
        _ = used.session


def test_nothing_of_an_unloaded_version_stays_in_memory(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.settle()
    remembered = house.manager.find("m")  # even by someone who kept the version
    bundle = weakref.ref(house.loader.bundles.pop(1))
    shutil.rmtree(tmp_path / "1")
    house.settle()
    assert bundle() is None
    with pytest.raises(UnavailableError):
        _ = remembered.bundle


def test_a_version_that_comes_back_is_loaded_again(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.settle()
    shutil.rmtree(tmp_path / "1")
    house.settle()
    assert house.states() == {1: "END"}
    with pytest.raises(NotFoundError, match=r"Servable not found for request: Latest\(m\)"):
        house.manager.find("m")
    make_versions(tmp_path, 1)
    house.settle()
    assert house.states() == {1: "AVAILABLE"}


def test_a_version_that_comes_back_while_it_is_unloaded_is_loaded_again(tmp_path: Path) -> None:
    make_versions(tmp_path, 1)
    house = House(tmp_path)
    house.settle()
    first = house.loader.bundles[1]
    house.manager.reconfigure([])
    assert house.pool.tasks  # the version is not closed yet
    house.manager.reconfigure([ModelConfig("m", str(tmp_path))])
    house.pool.run_all()
    assert house.manager.find("m").version == 1
    assert first.session.is_closed and not house.loader.bundles[1].session.is_closed


def test_a_base_path_that_vanishes_unloads_nothing(tmp_path: Path) -> None:
    base = make_versions(tmp_path / "models", 1)
    house = House(base)
    house.settle()
    shutil.rmtree(base)
    house.settle()
    assert house.manager.find("m").version == 1


def test_a_full_load_pool_is_tried_again(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.pool.is_full = True
    house.manager.poll()
    house.pool.is_full = False
    house.now = 1
    house.manager.retry_due_loads()
    house.pool.run_all()
    assert house.manager.find("m").version == 1


def test_what_cannot_be_found(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.settle()
    manager = house.manager
    with pytest.raises(NotFoundError) as latest:
        manager.find("foo")
    assert latest.value.message == "Servable not found for request: Latest(foo)"
    with pytest.raises(NotFoundError) as specific:
        manager.find("m", 50)
    assert specific.value.message == "Servable not found for request: Specific(m, 50)"
    with pytest.raises(InvalidArgumentError) as label:
        manager.find("m", label="x")
    assert label.value.message == "Unrecognized servable version label: x"
    with pytest.raises(InvalidArgumentError, match="Both model version"):
        manager.find("m", 1, "x")
    with pytest.raises(NotFoundError) as version:
        manager.statuses("m", 9)
    assert version.value.message == "Could not find version 9 of model m"
    with pytest.raises(NotFoundError) as versions:
        manager.statuses("foo")
    assert versions.value.message == "Could not find any versions of model foo"


def test_labels(tmp_path: Path) -> None:
    base = str(make_versions(tmp_path, 1, 2))
    house = House(tmp_path, ModelConfig("m", base, AllVersions(), {"stable": 1}))
    house.settle()
    assert house.manager.find("m", label="stable").version == 1
    house.manager.reconfigure([ModelConfig("m", base, AllVersions(), {"stable": 2})])
    assert house.manager.find("m", label="stable").version == 2
    text = "Request to assign label to version 9 of model m, which is not currently available"
    with pytest.raises(FailedPreconditionError, match=text):
        house.manager.reconfigure([ModelConfig("m", base, AllVersions(), {"stable": 9})])
    assert house.manager.labels("m") == {"stable": 2}


ASTRAY = (
    "Label stable: Request to assign label to version 9 of model m, "
    "which is not currently available for inference"
)


def test_a_label_of_a_version_that_is_not_there_is_logged_once_the_model_is_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base = str(make_versions(tmp_path, 1))
    house = House(tmp_path, ModelConfig("m", base, AllVersions(), {"stable": 9, "old": 1}))
    house.manager.poll()
    assert not caplog.messages  # the version may be the one that is being loaded
    house.pool.run_all()
    house.settle()
    assert [each.message for each in caplog.records if each.levelno == logging.ERROR] == [ASTRAY]
    make_versions(tmp_path, 9)
    house.settle()
    assert house.manager.find("m", label="stable").version == 9
    shutil.rmtree(tmp_path / "9")
    house.settle()
    assert caplog.messages.count(ASTRAY) == 2


def test_a_label_that_may_wait_for_its_version_is_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base = str(make_versions(tmp_path, 1))
    labels = {"stable": 9}
    house = House(tmp_path, ModelConfig("m", base, AllVersions(), labels),
                  allow_labels_for_unavailable=True)  # fmt: skip
    house.settle()
    assert ASTRAY not in caplog.messages


def test_the_list_of_models_has_the_labels_whose_versions_do_not_serve(tmp_path: Path) -> None:
    base = str(make_versions(tmp_path, 1))
    house = House(tmp_path, ModelConfig("m", base, AllVersions(), {"stable": 9, "old": 1}))
    house.manager.poll()
    (loading,) = json.loads(write_model_list(house.manager))["models"]
    assert loading["unavailable_labels"] == {"stable": "9", "old": "1"}
    house.pool.run_all()
    house.manager.find("m").bundle.session.clusters = dict  # type: ignore[method-assign]
    house.manager.find("m").bundle.session.engine = lambda: None  # type: ignore[method-assign]
    (listed,) = json.loads(write_model_list(house.manager))["models"]
    assert listed["unavailable_labels"] == {"stable": "9"}
    assert listed["versions"][0]["labels"] == ["old"]


def test_new_labels_may_wait_for_their_version_when_allowed(tmp_path: Path) -> None:
    base = str(make_versions(tmp_path, 1))
    house = House(tmp_path, ModelConfig("m", base, AllVersions(), {"stable": 1}),
                  allow_labels_for_unavailable=True)  # fmt: skip
    house.settle()
    labels = {"stable": 1, "canary": 2}
    house.manager.reconfigure([ModelConfig("m", base, AllVersions(), labels)])
    with pytest.raises(NotFoundError, match=r"Specific\(m, 2\)"):
        house.manager.find("m", label="canary")
    with pytest.raises(FailedPreconditionError):
        house.manager.reconfigure([ModelConfig("m", base, AllVersions(), {"stable": 2})])


def test_an_equal_configuration_changes_nothing(tmp_path: Path) -> None:
    base = str(make_versions(tmp_path, 1))
    house = House(tmp_path, ModelConfig("m", base))
    house.settle()
    (before,) = house.manager.configs()
    house.manager.reconfigure([ModelConfig("m", base)])
    (after,) = house.manager.configs()
    assert after is before


def test_nothing_of_the_load_is_kept_of_an_unloaded_version(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.settle()
    model = house.manager._models.by_name["m"]
    assert model.records[1].files is not None
    house.manager.reconfigure([])
    house.pool.run_all()
    assert house.states() == {1: "END"}
    assert model.records[1].files is None
    assert model.loaded == {}


def test_reconfigure_is_declarative(tmp_path: Path) -> None:
    first = str(make_versions(tmp_path / "a", 1))
    second = str(make_versions(tmp_path / "b", 7))
    house = House(tmp_path, ModelConfig("a", first))
    house.settle()
    house.manager.reconfigure([ModelConfig("b", second)])
    house.pool.run_all()
    assert house.manager.model_names() == ["b"]
    assert house.manager.find("b").version == 7
    assert house.states("a") == {1: "END"}
    with pytest.raises(NotFoundError):
        house.manager.find("a")


def test_loading_is_not_unknown(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    with pytest.raises(UnavailableError, match="Still loading model m"):
        house.manager.check_not_loading("m")
    house.manager.poll()
    assert not house.manager.wait_until_settled(0)
    with pytest.raises(UnavailableError, match="Still loading version 1 of model m"):
        house.manager.check_not_loading("m", 1)
    house.manager.check_not_loading("m", 2)
    house.manager.check_not_loading("unknown")
    house.pool.run_all()
    assert house.manager.wait_until_settled(0)
    house.manager.check_not_loading("m")


def test_stop_unloads_everything(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.settle()
    house.manager.stop()
    house.settle()
    assert house.states() == {1: "END"}
    assert list(house.manager.available_versions()) == []


def test_a_version_dropped_while_it_loads_is_unloaded_after(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.manager.poll()
    shutil.rmtree(tmp_path / "1")
    house.settle()
    assert house.states() == {1: "END"}
    assert house.loader.bundles[1].session.is_closed


def put_files(folder: Path, contents: bytes = b"whole") -> None:
    """The files of a version, as a copy leaves them."""
    (folder / "variables").mkdir(parents=True, exist_ok=True)
    for name in ("saved_model.pb", "variables/variables.index"):
        (folder / name).write_bytes(contents)


@pytest.mark.parametrize("retries", [0, 5])
def test_a_version_that_appears_before_its_files_loads_at_the_next_poll(
    tmp_path: Path, retries: int
) -> None:
    house = House(make_versions(tmp_path, 1), max_load_retries=retries)
    house.loader.failures[1] = [NotFoundError("no files yet"), DataLossError("half copied")]
    house.settle()
    put_files(tmp_path / "1", b"half")
    house.settle()
    assert house.loader.loads == [("m", 1)] * 2
    house.settle()  # nothing has changed, so nothing is tried
    house.settle()
    assert house.loader.loads == [("m", 1)] * 2
    put_files(tmp_path / "1")
    house.settle()
    assert house.states() == {1: "AVAILABLE"}
    assert house.now == 0


def test_a_change_after_the_last_attempt_begins_the_attempts_again(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1), max_load_retries=1)
    house.loader.failures[1] = [DataLossError("broken")] * 4
    for _ in range(2):
        house.settle()
        house.now += 60
        house.manager.retry_due_loads()
        house.pool.run_all()
        assert house.states() == {1: "END"}
        (tmp_path / "1" / "saved_model.pb").write_bytes(b"%f" % house.now)
    house.settle()
    assert house.states() == {1: "AVAILABLE"}


def test_files_that_change_while_they_are_loaded_do_not_serve(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    put_files(tmp_path / "1", b"old")
    load = house.loader.__call__
    left = [b"a part new", b"all new"]

    def loader(name: str, version: int, path: Path) -> object:
        bundle = load(name, version, path)
        if left:
            put_files(path, left.pop(0))
        return bundle

    house.manager._loader = loader  # type: ignore[assignment]
    for _ in range(2):
        house.settle()
        (status,) = house.manager.statuses("m")
        assert isinstance(status.error, UnavailableError)
        assert status.error.message == f"Files in {tmp_path}/1 changed while they were loaded"
        assert house.loader.bundles[1].session.is_closed
    house.settle()
    assert house.states() == {1: "AVAILABLE"}
    assert not house.loader.bundles[1].session.is_closed


def test_an_error_of_the_system_has_its_code(tmp_path: Path) -> None:
    house = House(make_versions(tmp_path, 1))
    house.loader.failures[1] = [OSError(errno.EMFILE, "too many")]
    house.settle()
    error = house.manager.statuses("m")[0].error
    assert isinstance(error, ResourceExhaustedError)
    assert error.message == "OSError; Too many open files"


def test_an_error_of_polls_that_repeats_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    base = tmp_path / "models"
    house = House(base)
    for _ in range(9):
        house.settle()
    assert len(caplog.messages) == 1
    assert f"Could not find base path {base}" in caplog.text
    make_versions(base, 1)
    house.settle()
    assert caplog.messages[1].startswith("Over after 9 times: Could not find base path")


def test_methods_of_signatures_are_checked_if_that_is_wanted(tmp_path: Path) -> None:
    base = make_versions(tmp_path / "models", 1)
    house = House(base, check_method_names=True)
    house.settle()
    version = house.manager.find("m")
    with pytest.raises(InternalError, match="Expected prediction signature method_name to be one"):
        version.signature("serving_default")
    assert version.short_steps["serving_default"] is None
    with pytest.raises(InvalidArgumentError, match="Expected regression signature method_name"):
        regress_outputs(version.signatures["regress_x_to_y"])


def test_a_reload_changes_which_requests_are_logged(tmp_path: Path) -> None:
    base = str(make_versions(tmp_path / "models", 1))
    settings = RequestLogSettings(filename_prefix="r")
    house = House(tmp_path, ModelConfig("m", base, request_log=settings))
    assert house.manager.request_log_of("m") == settings
    house.manager.reconfigure([ModelConfig("m", base)])
    assert house.manager.request_log_of("m") is None


def test_each_change_of_what_serves_is_told_with_another_digest(tmp_path: Path) -> None:
    base = str(make_versions(tmp_path, 1, 2))
    house = House(tmp_path, ModelConfig("m", base, AllVersions(), {"stable": 1}))
    told = [house.manager.digest()]
    house.manager.on_published = lambda: told.append(house.manager.digest())
    house.settle()
    house.manager.reconfigure([ModelConfig("m", base, AllVersions(), {"stable": 2})])
    house.manager.reconfigure([ModelConfig("m", base, LatestVersions(), {"stable": 2})])
    house.settle()
    assert len(set(told)) >= 4, "nothing, both versions, another label, one version"
    assert told[-1] == house.manager.digest()
    other = House(tmp_path, ModelConfig("m", base, LatestVersions(), {"stable": 2}))
    other.settle()
    assert other.manager.digest() == told[-1]
