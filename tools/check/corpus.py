"""Run a corpus of SavedModels and compare the outputs with those recorded in each model's folder.

    python tools/check/corpus.py DIR [name …]

Prints one row for each model: seconds to load, milliseconds of the first step and of the shortest
of five more steps, and the largest difference relative to the largest expected magnitude.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from runtime.api import OpError, SessionOptions
from tests.saved_model_corpus import load_model, read_calls, relative_difference

ROW = "{:26} {:>8} {:>10} {:>10} {:>10}  {}"


def check(folder: pathlib.Path) -> str:
    start = time.perf_counter()
    model = load_model(folder, SessionOptions())
    load_s = time.perf_counter() - start
    worst, first_ms, best_ms = 0.0, None, 0.0
    for call in read_calls(folder):
        start = time.perf_counter()
        got = model.run(call)
        first_ms = first_ms or 1000 * (time.perf_counter() - start)
        worst = max(worst, *(relative_difference(got[k], call.outputs[k]) for k in call.outputs))
    call = read_calls(folder)[0]
    for _ in range(5):
        start = time.perf_counter()
        model.run(call)
        elapsed = 1000 * (time.perf_counter() - start)
        best_ms = min(best_ms or elapsed, elapsed)
    verdict = "ok" if worst < 1e-4 else "DIFFERS"
    return ROW.format(
        folder.name, f"{load_s:.2f}", f"{first_ms:.2f}", f"{best_ms:.2f}", f"{worst:.1e}", verdict
    )


def main(arguments: list[str]) -> None:
    corpus = pathlib.Path(arguments[0])
    print(ROW.format("model", "load s", "first ms", "best ms", "rel. diff", ""))
    for folder in sorted(corpus.iterdir()):
        if not (folder / "io.npz").exists() or folder.name not in (arguments[1:] or folder.name):
            continue
        try:
            print(check(folder), flush=True)
        except OpError as error:
            print(f"{folder.name:26} {type(error).__name__}: {error.message[:300]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
