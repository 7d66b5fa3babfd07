import pytest

from runtime.errors import NotFoundError, PermissionDeniedError
from server.access.caller import LOCAL, Caller, Role, masked

ID = "0123456789abcdefghijkl"


def known(owner, *roles, **more):
    return Caller(owner, frozenset(roles), is_authenticated=True, **more)


def test_an_admin_has_every_role():
    admin = known("root", Role.ADMIN)
    for role in Role:
        admin.check_role(role)


def test_a_missing_role_is_named():
    text = "^This call requires the role sessions; the caller has predict$"
    with pytest.raises(PermissionDeniedError, match=text):
        known("alice", Role.PREDICT).check_role(Role.SESSIONS)
    with pytest.raises(PermissionDeniedError, match=r"the caller has none$"):
        known("alice").check_role(Role.PREDICT)


def test_another_owner_s_session_is_not_found():
    alice = known("alice", Role.SESSIONS)
    alice.check_session(ID, "alice")
    with pytest.raises(NotFoundError, match=f"^Session {ID} is not found.$"):
        alice.check_session(ID, "bob")
    with pytest.raises(NotFoundError):
        alice.check_session(ID, "")
    known("root", Role.ADMIN).check_session(ID, "bob")


def test_ids_are_shown_to_their_owner_only():
    alice, root = known("alice", Role.SESSIONS), known("root", Role.ADMIN)
    assert alice.shown_id(ID, "alice") == ID
    assert root.shown_id(ID, "alice") == masked(ID) == "0123…"
    assert root.shown_id(ID, "root") == ID


def test_those_who_are_not_authenticated_do_not_see_each_other_s_ids():
    anyone = Caller(roles=frozenset({Role.SESSIONS}))
    anyone.check_session(ID, "")  # the id is the capability
    assert anyone.shown_id(ID, "") == masked(ID)


def test_graphs_may_be_forbidden():
    with pytest.raises(PermissionDeniedError, match=r"sessions\.graphs"):
        known("alice", Role.ADMIN, may_bring_graphs=False).check_may_bring_graphs()


def test_admins_see_whole_texts():
    hide = {"redact": lambda text: "hidden"}
    assert known("alice", Role.PREDICT, **hide).shown_text("/a") == "hidden"
    assert known("root", Role.ADMIN, **hide).shown_text("/a") == "/a"
    assert LOCAL.shown_text("/a") == "/a"
