import pytest

from runtime.errors import InvalidArgumentError
from server.commands.load.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "expected", "path"),
    [
        ("http://h:1/v1/models/m", Address("rest", "h", 1, False, model="m"), "/v1/models/m"),
        ("http://h:1/v1/models/m:predict", Address("rest", "h", 1, False, model="m"), None),
        (
            "https://h/v1/models/m/versions/3:predict",
            Address("rest", "h", 8501, True, model="m", version="3"),
            "/v1/models/m/versions/3",
        ),
        (
            "http://h:1/api/v1/models/m/labels/a%20b",
            Address("rest", "h", 1, False, prefix="/api", model="m", label="a b"),
            "/api/v1/models/m/labels/a%20b",
        ),
        (
            "http://[::1]:1/v2/models/m/versions/3/infer",
            Address("v2", "::1", 1, False, model="m", version="3"),
            "/v2/models/m/versions/3",
        ),
        ("grpc://h/m", Address("grpc", "h", 8500, False, model="m"), None),
        ("grpcs://h:1/m/7", Address("grpc", "h", 1, True, model="m", version="7"), None),
        ("http://h:1", Address("rest", "h", 1, False), None),
    ],
)
def test_urls(text, expected, path):
    address = parse_address(text, None, None)
    assert address == expected
    assert path is None or address.model_path == path


def test_a_bare_address_takes_flags():
    assert parse_address("http://h", "v2", "m").model_path == "/v2/models/m"
    assert str(parse_address("grpc://[::1]", "grpc", "m")) == "model m at [::1]:8500"
    assert str(parse_address("http://h/v1/models/m", "rest", "m")) == "model m at h:8501"
    with_version = parse_address("http://h/v1/models/m/versions/2", None, None)
    assert str(with_version) == "model m version 2 at h:8501"


@pytest.mark.parametrize(
    ("text", "protocol", "model", "message"),
    [
        ("ftp://h/m", None, None, "is none of the forms http://HOST:PORT/v1/models/NAME"),
        ("http://", None, None, "is none of the forms"),
        ("http://u:p@h/v1/models/m", None, None, "is none of the forms"),
        ("http://h:1/v1/models/m?x=1", None, None, "is none of the forms"),
        ("http://h:1/v3/models/m", None, None, "The path of http://h:1/v3/models/m is none"),
        ("http://h:port/v1/models/m", None, None, "is no URL: Port could not be cast"),
        ("http://h/v1/models/m", "v2", None, "--protocol=v2 contradicts http://h/v1/models/m"),
        ("grpc://h/m", "rest", None, "--protocol=rest contradicts grpc://h/m"),
        ("http://h", "grpc", "m", "--protocol=grpc contradicts http://h"),
        ("grpc://h/m", None, "n", "--model=n contradicts grpc://h/m"),
    ],
)
def test_what_contradicts_itself_is_refused(text, protocol, model, message):
    with pytest.raises(InvalidArgumentError) as caught:
        parse_address(text, protocol, model)
    assert message in caught.value.message
