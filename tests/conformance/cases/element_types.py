"""Element types that the other families do not cover: their cases with another type.

`tools/record/kernel_dtypes.py` makes them from the table `element_types.json` beside it. A case
holds the same graph for several types, each in a name scope that is the name of its type.
"""

from __future__ import annotations

import pathlib

from tests.conformance.case import Case
from tests.conformance.stored_cases import read_cases

CASES: tuple[Case, ...] = read_cases(pathlib.Path(__file__).parent / "element_types.pb.gz")
