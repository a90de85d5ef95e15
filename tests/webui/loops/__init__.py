"""Small agents that know nothing of us: standard library, plain HTTP, the usual variables. Run as commands."""
