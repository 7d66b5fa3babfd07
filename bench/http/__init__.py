"""HTTP: load generators, an echo, rates, large bodies, priorities."""
