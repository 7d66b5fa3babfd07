import os

from server.file_watch import FileWatch


def test_changes_are_noticed_once(tmp_path):
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text("1")
    watch = FileWatch([str(path), None, str(other)])
    assert not watch.has_changed()
    os.utime(path, ns=(1, 1))
    assert watch.has_changed() and not watch.has_changed()
    other.write_text("2")
    assert watch.has_changed() and not watch.has_changed()
    path.unlink()
    assert watch.has_changed() and not watch.has_changed()


def test_a_link_that_changes_its_goal_is_a_change(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_text("same")
        os.utime(tmp_path / name, ns=(1, 1))
    link = tmp_path / "link"
    link.symlink_to("one")
    watch = FileWatch([str(link)])
    link.unlink()
    link.symlink_to("two")
    assert watch.has_changed()
