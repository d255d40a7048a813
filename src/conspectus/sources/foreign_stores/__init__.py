"""Readers of the stores of other products."""
