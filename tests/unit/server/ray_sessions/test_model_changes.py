"""What followers are told to do, by what they have done and what holds."""

from __future__ import annotations

from server.ray_sessions.model_changes import ModelChanges

LOAD = {"load": "a", "base_path": None}
UNLOAD = {"unload": "a"}
REFUSED = (5, "not found")


def changes(*followers: str) -> ModelChanges:
    made = ModelChanges()
    for who in followers:
        made.heard(who, 0)
    return made


def held(made: ModelChanges, name: str, change: dict[str, object]) -> None:
    """Let a change hold that nobody has tried."""
    made.begin(name, change, None)
    made.hold()


def test_a_change_that_all_have_tried_holds() -> None:
    made = changes("x", "y")
    made.begin("1", LOAD, 3.0)
    for who in ("x", "y"):
        assert made.instruction(who, 0, None) == ("try", "1", LOAD, 3.0)
        made.report(who, "1", None)
        assert made.instruction(who, 0, "1") is None  # it waits for the others
    assert made.waits_for() == set()
    made.hold()
    assert made.holds("1")
    assert made.instruction("x", 0, "1") == ("hold",)
    made.heard("x", 1)
    assert made.instruction("x", 1, None) is None
    assert made.behind(["x", "y"]) == ["y"]


def test_a_change_that_one_refuses_is_undone_by_all() -> None:
    made = changes("x", "y", "z")
    trial = made.begin("1", LOAD, None)
    made.report("x", "1", None)
    made.report("y", "1", REFUSED)
    assert made.waits_for() == {"z"}
    made.drop("z")  # it has ended
    assert (made.waits_for(), trial.failure) == (set(), REFUSED)
    made.abandon()
    assert made.undoing == {"x", "y"}
    for who in ("x", "y"):
        assert made.instruction(who, 0, "1") == ("undo",)
        assert made.instruction(who, 0, None) is None
    assert made.undoing == set()
    assert not made.holds("1")
    made.report("z", "1", None)  # too late
    assert made.instruction("z", 0, "1") == ("undo",)


def test_who_comes_later_makes_what_holds_before_it_tries_more() -> None:
    made = changes()
    held(made, "1", LOAD)
    held(made, "2", UNLOAD)
    made.begin("3", LOAD, None)
    assert made.instruction("x", 0, None) == ("make", 0, "1", LOAD)
    assert made.instruction("x", 1, None) == ("make", 1, "2", UNLOAD)
    assert made.instruction("x", 2, None) == ("try", "3", LOAD, None)


def test_all_models_anew_take_the_place_of_earlier_changes() -> None:
    made = changes()
    held(made, "1", LOAD)
    assert made.for_newcomers == 0
    anew = {"configure": []}
    made.begin_anew(anew)
    assert (made.first, made.end, made.for_newcomers) == (1, 2, 2)
    assert made.instruction("x", 0, None) == ("make", 1, "", anew)
    assert made.instruction("y", 2, None) is None
    held(made, "2", UNLOAD)
    assert made.instruction("y", 2, None) == ("make", 2, "2", UNLOAD)


def test_what_is_kept_is_enough_to_go_on() -> None:
    before = changes("x")
    held(before, "1", LOAD)
    before.begin("2", UNLOAD, None)
    kept, kept_early = before.kept(), before.kept(with_trial=True)
    # The trial did not hold: who has tried it undoes it.
    after = ModelChanges()
    after.restore(kept)
    assert after.instruction("x", 1, "2") == ("undo",)
    assert after.instruction("y", 0, None) == ("make", 0, "1", LOAD)
    # It was about to hold.
    after.restore(kept_early)
    assert after.holds("2")
    assert after.instruction("x", 1, "2") == ("hold",)
