"""What a request costs, and the formula that predicts it: `python -m bench.capacity`."""
