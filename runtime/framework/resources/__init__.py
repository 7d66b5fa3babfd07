"""What a session or a step keeps under a handle: variables, tables, queues, tensor arrays."""
