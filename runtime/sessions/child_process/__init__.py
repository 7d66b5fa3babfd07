"""Child processes that run steps of low-priority pools: both ends and their messages."""
