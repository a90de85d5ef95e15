"""Rules in words: found, declared, and looked for in what a model sees. Deterministic, asks no model, reads no file."""
