"""Memories: scopes, versions, retention and JSON lines, as pure functions.

Imports graph, ingest, ports, streams and text.
"""
