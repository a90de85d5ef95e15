"""One module for each harness: how it is recognised, and what does not count in its requests."""
