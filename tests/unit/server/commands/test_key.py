import hashlib

from server.main import main


def test_a_key_is_printed_with_its_hash(capsys):
    assert main(["key"]) == 0
    key, digest = (line.split()[1] for line in capsys.readouterr().out.splitlines())
    assert hashlib.sha256(key.encode()).hexdigest() == digest
