"""The load generator of `runstep bench`: callers that measure, and what they call."""
