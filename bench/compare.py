"""Compare the step times of two runs, also of different machines.

    python -m bench.compare OLD.json NEW.json

For each model, engine and batch size: the new time by the old one, and the same with both times
multiplied by the speed of the reference product of their run: what remains if the machines' speed
is taken out. Ratios within 10 % are noise.
"""

from __future__ import annotations

import pathlib
import sys

from bench.readme_tables import Results, read_results
from bench.tables import ENGINES, step_figure, table


def comparison(old: Results, new: Results) -> list[list[str]]:
    """Return rows of model, engine, batch, old ms, new ms, ratio, ratio by the reference."""
    before, after = old["sections"]["steps"], new["sections"]["steps"]
    speed = after["gemm_gflops"]["median"] / before["gemm_gflops"]["median"]
    rows = []
    for model, engines in after["models"].items():
        for engine, row in engines.items():
            for batch, figures in row.get("batches", {}).items():
                was = step_figure(before, model, engine, int(batch), "median_ms")
                if was is None:
                    continue
                ratio = figures["median_ms"] / was
                shown = [f"{was:.3f}", f"{figures['median_ms']:.3f}"]
                ratios = [f"{ratio:.2f}", f"{ratio * speed:.2f}"]
                rows.append([model, ENGINES[engine], batch, *shown, *ratios])
    return rows


def main() -> None:
    old, new = (read_results(pathlib.Path(name)) for name in sys.argv[1:])
    head = ["model", "engine", "batch", "old ms", "new ms", "new ÷ old", "by the reference"]
    print(table(head, comparison(old, new)))


if __name__ == "__main__":
    main()
