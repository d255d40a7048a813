"""What stays in mind and what goes: pure functions."""
