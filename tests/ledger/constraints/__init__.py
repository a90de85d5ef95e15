"""Rules in words."""
