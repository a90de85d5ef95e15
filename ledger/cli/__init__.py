"""The commands of this layer: import, look, verify, ask, audit, hook, tap, join. Wires, prints, decides nothing.

Nothing is imported here: a command loads what it needs, and no more.
"""
