"""Going on from a point of a session in the real runtime. May be imported by `replay.recovery` and `webui`."""
