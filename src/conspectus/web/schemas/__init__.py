"""Schemas of requests and responses, with their limits."""
