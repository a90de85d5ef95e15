"""Live loops, recorded for real."""
