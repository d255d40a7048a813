"""Captions, events, alerts and summaries in SQL."""
