"""Tests of the package `ledger`."""
