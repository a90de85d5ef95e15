"""Hooks inside the real frameworks, each in an environment of its own: `make test-frameworks`."""
