"""Memories in SQL: order, versions, retention and deletion."""
