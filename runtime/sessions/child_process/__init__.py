"""Steps of a low-priority pool that run in a child process."""
