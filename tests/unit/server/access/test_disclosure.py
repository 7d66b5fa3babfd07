import pytest

from server.access.disclosure import Redactor, redactor


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Could not read /srv/models/m/1/saved_model.pb", "Could not read [path]"),
        ("in '/srv/models': no", "in '[path]': no"),
        ("/srv/models,/srv/models/x", "[path],[path]"),
        ("/srv/modelsmith and /other/srv/models", "/srv/modelsmith and /other/srv/models"),
        ("running on node-7. Make sure", "running on [host]. Make sure"),
        ("node-77 my-node-7 node-7", "node-77 my-node-7 [host]"),
        ("device /job:localhost/replica:0", "device /job:localhost/replica:0"),
        ("from models/m/1", "from [path]"),
    ],
)
def test_paths_and_host_names_are_hidden(text, shown):
    assert redactor(["/srv/models", "models/m", "/"], "node-7")(text) == shown


def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    redact = redactor([str(tmp_path / "link")], "")
    assert redact(f"{tmp_path}/real/x and {tmp_path}/link/y") == "[path] and [path]"


def test_nothing_to_hide():
    assert redactor(["/", "."], "localhost")("/a localhost .") == "/a localhost ."


def test_folders_that_are_added_later_are_hidden_and_stay_so():
    folders = []
    redact = Redactor(["/srv/one"], lambda: folders)
    text = "/srv/one/1 /srv/two/2"
    assert redact(text) == "[path] /srv/two/2"
    folders.append("/srv/two")
    assert redact(text) == "[path] [path]"
    folders.clear()
    assert redact(text) == "[path] [path]"
