"""Real harnesses, recorded and replayed. Only `make test-harnesses` runs them: it installs them first."""
