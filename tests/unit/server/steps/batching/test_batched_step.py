from runtime.api import RunRequest
from server.steps.batching.batched_step import BatchedStep


def test_a_step_begins_with_the_batch_of_its_first_part():
    run = RunRequest()
    step = BatchedStep(run)
    assert run.began_at is None
    step.begins()
    began = run.began_at
    assert began is not None
    step.begins()
    assert run.began_at == began
    BatchedStep().begins()  # of no request
