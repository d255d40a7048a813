"""Memories: scopes, versions, retention and JSON lines, as pure functions.

Imports ingest, ports, streams and text.
"""
