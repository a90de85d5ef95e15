"""Tests of replays in process."""
