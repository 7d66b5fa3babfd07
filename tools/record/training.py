"""Record the losses of TensorFlow for the programs of tests/training.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record/training.py [CHECKPOINT]

It also writes tests/training/checkpoint, TensorFlow's checkpoint of one program after half of its
steps. CHECKPOINT is the path of a checkpoint that Runstep saved after half of the steps, named for
its program (`embedding-Adam`): TensorFlow restores it and continues, nothing is recorded, and the
losses must equal those recorded.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from tools.record.cases import plain_config  # isort: skip # sets TensorFlow's environment

import numpy as np
import tensorflow as tf

from tests.conformance.case import Answer, read_golden, write_golden
from tests.training.programs import PROGRAMS, STEPS, Training, decays, digest

v1 = tf.compat.v1
FOLDER = pathlib.Path(__file__).parents[2] / "tests" / "training" / "checkpoint"


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
    (FOLDER / "checkpoint").unlink()  # contains an absolute path of this machine


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
