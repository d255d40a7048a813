"""Connectors that need a library, built on what `conspectus.connectors` and `conspectus.errors` have."""
