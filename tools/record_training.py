"""Record what TensorFlow's losses are when it runs the programs of tests/training.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record_training.py

It also writes tests/training/checkpoint, TensorFlow's checkpoint of one program half-way. With the
path of a checkpoint of ours, which is called like its program (`embedding-Adam`) and was saved
half-way, TensorFlow goes on from there; the losses have to be those that it had itself.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from tools.record_cases import plain_config  # isort: skip # sets TensorFlow's environment

import numpy as np
import tensorflow as tf

from tests.conformance.case import Answer, read_golden, write_golden
from tests.training.programs import PROGRAMS, STEPS, Training, decays, digest

v1 = tf.compat.v1
FOLDER = pathlib.Path(__file__).parent.parent / "tests" / "training" / "checkpoint"


def names(found: list[str]) -> np.ndarray:
    array = np.empty(len(found), object)
    array[:] = [name.encode() for name in found]
    return array


def record() -> None:
    answers = {}
    for name, program in PROGRAMS.items():
        training = Training(v1, program)
        answers[name] = (digest(), [Answer((training.losses(), names(training.names)))])
        training.close()
        print(name, *answers[name][1][0].values[0][[0, -1]])
    with tf.Graph().as_default(), v1.Session(config=plain_config()) as session:
        step = v1.placeholder(tf.int32, [])
        rates = decays(v1, step)
        found = [session.run(list(rates.values()), {step: number}) for number in range(10)]
    answers["decays"] = (digest(), [Answer((np.array(found, np.float32), names(list(rates))))])
    write_golden("training_programs", answers)


def export_checkpoint(program: str) -> None:
    training = Training(v1, PROGRAMS[program])
    training.losses(0, STEPS // 2)
    FOLDER.mkdir(exist_ok=True)
    training.save(str(FOLDER / program))
    (FOLDER / "checkpoint").unlink()  # names the folder of this machine


def go_on(path: str) -> None:
    program = pathlib.Path(path).name
    expected = read_golden("training_programs")[program][1][0].values[0][STEPS // 2 :]
    training = Training(v1, PROGRAMS[program])
    training.restore(path)
    difference = np.abs(training.losses(STEPS // 2) - expected).max()
    print(f"TensorFlow goes on from {path}: its losses differ by {difference:.1e}")
    assert difference < 1e-5


if __name__ == "__main__":
    v1.disable_v2_behavior()
    if sys.argv[1:]:
        go_on(sys.argv[1])
    else:
        record()
        export_checkpoint("embedding-Adam")
