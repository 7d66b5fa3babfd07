"""Child processes that run low-priority steps: the parent's and the child's side, messages."""
