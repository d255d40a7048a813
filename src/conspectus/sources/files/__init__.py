"""Readers of local files, by format."""
