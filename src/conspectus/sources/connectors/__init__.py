"""Connectors: stores elsewhere that a collection is kept in step with."""
