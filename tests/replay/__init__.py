"""Tests of `replay`: laws by random histories, and the cases that people meet."""
