"""Tests of going back: effects, checkpoints, plan and execution."""
