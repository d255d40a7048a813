"""Connectors: sources outside of Conspectus that a collection is synced with."""
