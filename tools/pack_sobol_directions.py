"""Pack Joe and Kuo's direction numbers into runtime/kernels/random/sobol_directions.npz.

    python tools/pack_sobol_directions.py new-joe-kuo-6.21201

The file is on the authors' page, web.maths.unsw.edu.au/~fkuo/sobol. After a head line there is a
line for each coordinate from the second on: its number, the polynomial's degree and inner
coefficients, and the initial numbers of the recurrence. `runtime/kernels/random/sobol.py`
documents the packed arrays.
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from runtime.kernels.random.sobol import MAX_DIM


def main() -> None:
    """Read the text file named by the first argument and write the packed arrays."""
    lines = pathlib.Path(sys.argv[1]).read_text().splitlines()[1:MAX_DIM]
    rows = [[int(word) for word in line.split()] for line in lines]
    polynomials = [1, *((1 << degree) + 2 * inner + 1 for _, degree, inner, *_ in rows)]
    bits = [
        number >> shift & 1
        for degree in range(1, rows[-1][1] + 1)
        for digit in range(degree)
        for row in rows
        if row[1] == degree
        for number in (row[3 + digit],)
        for shift in range(1, digit + 1)
    ]
    np.savez(
        ROOT / "runtime" / "kernels" / "sobol_directions.npz",
        polynomial_steps=(np.diff(polynomials, prepend=1) // 2).astype(np.uint8),
        initial_bits=np.packbits(np.array(bits, np.uint8)),
    )


if __name__ == "__main__":
    main()
