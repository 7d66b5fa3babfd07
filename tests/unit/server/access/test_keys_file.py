import hashlib
import pathlib
import re

import pytest
import yaml

from runtime.errors import InvalidArgumentError
from server.access.caller import Role
from server.access.keys_file import KEY_PREFIX, Owners, key_digest, new_key, read_owners
from server.access.limits import NO_LIMITS, Limits


def sha256(key):
    return hashlib.sha256(key.encode()).hexdigest()


def read(tmp_path, content):
    path = tmp_path / "keys.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return read_owners(path, ["normal", "low"], ["online", "background"])


def test_keys_are_long_and_random():
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(key.startswith(KEY_PREFIX) and len(key) >= 40 for key in keys)


def test_owners_are_found_by_key_certificate_and_name(tmp_path):
    limits = {"requests_per_second": 5, "priorities": ["low"], "pools": ["background"]}
    owners = read(
        tmp_path,
        {"owners": {
            "alice": {
                "roles": ["predict", "sessions"], "keys": [sha256("old"), sha256("new")],
                "certificates": ["alice.example"], "limits": limits,
            },
            "root": {"roles": ["admin"], "keys": [sha256("r")]},
        }},
    )  # fmt: skip
    alice = owners.by_name["alice"]
    assert owners.by_key[key_digest("old")] is owners.by_key[key_digest("new")] is alice
    assert owners.by_certificate == {"alice.example": alice}
    assert alice.roles == {Role.PREDICT, Role.SESSIONS}
    assert alice.limits == Limits(requests_per_second=5, priorities=("low",), pools=("background",))
    assert owners.by_name["root"].limits == NO_LIMITS


def test_limits_of_the_file_are_for_owners_without_limits(tmp_path):
    owners = read(tmp_path, {"limits": {"sessions": 3}, "owners": {"a": {}, "b": {"limits": {}}}})
    assert owners.limits == owners.by_name["a"].limits == Limits(sessions=3)
    assert owners.by_name["b"].limits == NO_LIMITS


def test_an_empty_file_has_no_owners(tmp_path):
    assert read(tmp_path, "") == Owners()


SECRET = "rs_this_is_a_key_that_someone_put_here"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"owners": {"a": {"keys": [SECRET]}}}, r"owners\.a\.keys\.0 must be the SHA-256"),
        ({"owners": {"a": {"key": SECRET}}},
         r"owners\.a\.key: There is no such key \(did you mean keys\?\)"),
        ({"owners": {"a": {"roles": [SECRET]}}}, r"owners\.a\.roles\.0: Input should be 'predict'"),
        ({"owners": SECRET}, "owners: Input should be a map"),
        (SECRET, r"Wrong entries in .*keys\.yaml: the file: Input should be a map of keys"),
        (f"owners: [{SECRET}", "is not YAML"),
        ({"owners": {SECRET + " ": {}}}, "an owner's name must match"),
        ({"owners": {"a": {"keys": [sha256("x")]}, "b": {"keys": [sha256("x")]}}},
         r"owners\.b\.keys\.0 is also another owner's"),
        ({"owners": {"a": {"certificates": ["x"]}, "b": {"certificates": ["x"]}}},
         "a certificate of b is also another owner's"),
        ({"owners": {"a": {"limits": {"priorities": ["high"]}}}},
         r"limits\.priorities of owners\.a: \['high'\] is not in \['low', 'normal'\]"),
        ({"limits": {"pools": ["p"]}}, r"limits\.pools of the file: \['p'\] is not in"),
        ({"owners": {"a": {"limits": {"requests_per_second": 0}}}}, "greater than 0"),
        ({"owners": {"a": {"limits": {"bytes_per_second": float("nan")}}}}, "bytes_per_second"),
    ],
)  # fmt: skip
def test_wrong_files_are_described_without_their_values(tmp_path, content, message):
    with pytest.raises(InvalidArgumentError, match=message) as error:
        read(tmp_path, content)
    assert SECRET not in error.value.message


def test_a_missing_file(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"Cannot read .*No such file"):
        read_owners(tmp_path / "none", [], [])


def test_the_example_of_the_security_page_is_right(tmp_path):
    page = (pathlib.Path(__file__).parents[4] / "SECURITY.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    owners = read(tmp_path, example)
    assert set(owners.by_name) == {"alice", "monitoring"} and len(owners.by_key) == 2
    alice, general = owners.by_name["alice"].limits, owners.limits
    assert None not in (alice.sessions, alice.concurrent_steps, alice.priorities, alice.pools)
    assert owners.by_name["monitoring"].limits == general != NO_LIMITS
