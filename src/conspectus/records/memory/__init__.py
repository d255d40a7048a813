"""Memories and their versions in SQL."""
