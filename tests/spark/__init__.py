"""The lake on a real Spark cluster; runs in an environment of its own: `make test-spark`."""
