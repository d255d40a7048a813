"""Connectors: external stores that a collection is synced with."""
