"""The resources of sessions and steps: variables, tables, queues, accumulators, tensor arrays."""
