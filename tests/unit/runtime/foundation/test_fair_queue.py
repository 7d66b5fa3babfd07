"""The order in which items leave: owners take turns, each with its items in order."""

from runtime.foundation.fair_queue import FairQueue


def anyone(_owner: object) -> bool:
    return True


def taken(queue: FairQueue[str]) -> str:
    result = ""
    while (item := queue.take(anyone)) is not None:
        result += item
    return result


def test_one_owner_has_a_queue_in_order():
    queue = FairQueue[str]()
    for item in "abc":
        queue.put(None, item)
    assert len(queue) == 3
    assert taken(queue) == "abc"
    assert len(queue) == 0


def test_owners_take_turns():
    queue = FairQueue[str]()
    for item in "abcdef":
        queue.put("flood", item)
    queue.put("one", "1")
    queue.put("other", "2")
    assert taken(queue) == "a12bcdef"


def test_an_owner_that_returns_gets_the_last_turn():
    queue = FairQueue[str]()
    for item in "ab":
        queue.put("first", item)
    queue.put("second", "1")
    assert [queue.take(anyone) for _ in range(2)] == ["a", "1"]
    queue.put("second", "2")
    assert taken(queue) == "b2"


def test_an_owner_that_may_not_take_keeps_its_items():
    queue = FairQueue[str]()
    queue.put("held", "a")
    queue.put("free", "1")
    assert queue.has(lambda owner: owner == "held")
    assert queue.take(lambda owner: owner != "held") == "1"
    assert queue.take(lambda owner: owner != "held") is None
    assert not queue.has(lambda owner: owner != "held")
    assert taken(queue) == "a"
