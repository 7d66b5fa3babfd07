import pytest

from server.main import main


@pytest.mark.parametrize("arguments", [[], ["frob"], ["show"], ["serve", "--port=x"]])
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: runstep" in capsys.readouterr().err
