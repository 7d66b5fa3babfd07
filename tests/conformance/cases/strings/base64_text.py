"""Web-safe base64, valid and not."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case


def texts(*items: object) -> np.ndarray:
    return np.array(items, object)


CASES = (
    *(
        case("EncodeBase64", texts("", "a", "ab", "abc", b"\xff\xfe\xfd"), pad=p)
        for p in (True, False)
    ),
    case("DecodeBase64", [["YQ", "YWI"], ["YWJj", "__79"]]),
    *(
        case("DecodeBase64", text)
        for text in (
            *("", "YQ==", "YWI=", "YQ=", "Y", "YWJjY", "Y!==", "//79", "++", "Y=", "=", "===="),
            *("YQ===", "YR==", "YR", " YQ", "YQ\n", "YW=j", "Y-_a"),
        )
    ),
)
