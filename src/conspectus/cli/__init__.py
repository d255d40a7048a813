"""Command line: each command calls the engine and prints the result.

Imports bootstrap, client, engine, evals, ingest, mcp, memory, ports, streams, sync, text, web and window.
"""
