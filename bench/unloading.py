"""Measure the memory that stays after models have been loaded, used and unloaded again.

    python -m bench.unloading [DIR] [--models 20]

One server reads its models from a file (`--model_config_file`) that is rewritten. DIR is a model's
folder (default: the digits example). First one copy of it is loaded, predicted on and unloaded, so
that everything that stays for good is there; then all copies at once. They are predicted on again
when the server is idle: by then their clusters are compiled, and run for the first time. Each
figure is the resident memory once the server has been idle for as long as it keeps the memory of
requests, and a second more.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import tempfile
import time
import urllib.error

from bench.engines.warm_up import wait_until_idle
from bench.measure import resident_bytes, write_json
from bench.serving import ROOT, Served, runstep_server
from bench.start import body_for, processor_seconds
from bench.tables import unloading_table
from server.models.freed_memory import IDLE_SECONDS

PREDICTIONS = 3  # of each copy
LIMIT_SECONDS = 300
POLL_SECONDS = 1  # the server reads the file so often
# Without a request. Before this has passed, a figure may have the memory of requests or not.
SETTLE_SECONDS = IDLE_SECONDS + 1


def configuration(directory: pathlib.Path, count: int) -> str:
    """Return the file with so many copies of the model, `model_0` and so on."""
    copies = [
        f'config {{ name: "model_{index}" base_path: "{directory}" model_platform: "tensorflow" }}'
        for index in range(count)
    ]
    return "model_config_list {\n" + "\n".join(copies) + "\n}\n"


def replace(file: pathlib.Path, text: str) -> None:
    """Replace a file that another process may be reading."""
    new = file.with_suffix(".new")
    new.write_text(text)
    os.replace(new, file)


def predict(served: Served, name: str, body: bytes) -> int:
    """Return the status of one prediction."""
    try:
        served.post(f"/v1/models/{name}:predict", body)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def wait_for(served: Served, name: str, body: bytes, is_there: bool) -> None:
    """Wait until a model answers, or until it does not any more."""
    end = time.monotonic() + LIMIT_SECONDS
    while (predict(served, name, body) == 200) is not is_there:
        if time.monotonic() > end:
            raise RuntimeError(f"{name} is {'not' if is_there else 'still'} there")
        time.sleep(POLL_SECONDS / 10)


def measure(directory: pathlib.Path, count: int) -> dict[str, float]:
    """Return the resident MB before, with and after the copies."""
    body = body_for(directory)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "models.config")
        file.write_text(configuration(directory, 0))
        settings = (
            f"--model_config_file={file}",
            f"--model_config_file_poll_wait_seconds={POLL_SECONDS}",
        )
        with runstep_server({"models": []}, *settings) as served:

            def used() -> float:
                return processor_seconds(served.process_id)

            def resident_with(copies: int, before: int) -> float:
                replace(file, configuration(directory, copies))
                names = [f"model_{index}" for index in range(max(copies, before))]
                for name in names:
                    wait_for(served, name, body, is_there=copies > 0)
                for _ in range(2 if copies else 0):
                    for name in names * PREDICTIONS:
                        predict(served, name, body)
                    wait_until_idle(processor_time=used)
                time.sleep(SETTLE_SECONDS)
                wait_until_idle(processor_time=used)
                return resident_bytes(served.process_id) / 1e6

            resident_with(1, 0)
            before = resident_with(0, 1)
            loaded = resident_with(count, 0)
            after = resident_with(0, count)
    return {"copies": count, "before_mb": before, "loaded_mb": loaded, "after_mb": after}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = ROOT / "examples/models/digits"
    parser.add_argument("directory", nargs="?", type=pathlib.Path, default=default)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    figures = measure(options.directory.resolve(), options.models)
    print(unloading_table(figures))
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
