"""Command line: each command calls the engine and prints the result.

Imports bootstrap, client, engine, evals, ingest, mcp, memory, operations, ports, streams, sync, text, web and
window.
"""
