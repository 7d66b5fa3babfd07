import io

from server.commands.progress import Progress, bar


def test_the_bar_goes_to_and_fro():
    frames = [bar(frame) for frame in range(46)]
    assert frames[0] == "#" + "." * 23 and frames[23] == "." * 23 + "#"
    assert frames[45] == frames[1] and bar(46) == frames[0]


def test_nothing_is_drawn_where_there_is_no_terminal():
    stream = io.StringIO()
    with Progress("Loading", stream):
        pass
    assert stream.getvalue() == ""
