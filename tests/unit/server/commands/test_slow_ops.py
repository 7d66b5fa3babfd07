import protos as pb
from server.commands.slow_ops import describe_slow

MICRO = 1000


def stats(*nodes):
    """Of (name, op, thread, begin, length) in µs."""
    device = pb.DeviceStepStats(device="cpu")
    for name, op, thread, begin, length in nodes:
        device.node_stats.add(
            node_name=name, timeline_label=f"{name} = {op}()", thread_id=thread,
            all_start_nanos=(1000 + begin) * MICRO, all_end_rel_nanos=length * MICRO,
        )  # fmt: skip
    return pb.StepStats(dev_stats=[device])


def test_the_slowest_kind_is_named_with_its_share():
    lines = list(
        describe_slow(
            stats(
                ("a", "Conv2D", 1, 0, 500),
                ("b", "Conv2D", 1, 500, 300),
                ("c", "Relu", 1, 800, 90),
                ("d", "NoOp", 1, 890, 1),
                ("e", "Add", 1, 961, 39),
            )
        )
    )
    assert lines[0] == (
        "80 % of 1 ms was Conv2D (2 ops); 9 % was Relu (1 op); 7 % passed between ops; 4 % was "
        "Add (1 op); 0 % was 1 other."
    )
    assert [line.split()[-1] for line in lines[3:]] == ["a", "b", "c", "e", "d"]
    assert lines[3].split()[:4] == ["500", "µs", "50.0", "Conv2D"]


def test_a_loop_has_what_its_ops_leave():
    sentence = next(
        describe_slow(
            stats(
                ("loop", "While", 1, 0, 1000),
                ("loop/a", "MatMul", 1, 100, 400),
                ("loop/b", "MatMul", 1, 500, 400),
            )
        )
    )
    assert sentence == "80 % of 1 ms was MatMul (2 ops); 20 % was While (1 op)."


def test_threads_share_the_work():
    sentence = next(describe_slow(stats(("a", "A", 1, 0, 300), ("b", "B", 2, 0, 100))))
    assert sentence == (
        "75 % of 400 µs of work on 2 threads (300 µs passed) was A (1 op); 25 % was B (1 op)."
    )


def test_what_passes_values_in_is_no_op():
    assert list(describe_slow(stats(("_SOURCE", "NoOp", 1, 0, 1)))) == ["No op ran."]


def test_the_table_has_ten_rows_with_the_first_output():
    step = stats(*((f"n{i}", "Mul", 1, 10 * i, 10 - i % 3) for i in range(30)))
    output = step.dev_stats[0].node_stats[0].output.add()
    output.tensor_description.dtype = pb.DT_FLOAT
    output.tensor_description.shape.dim.add(size=7)
    lines = list(describe_slow(step))
    assert len(lines) == 3 + 10
    assert lines[3].endswith("Mul  n0  float32[7]")
