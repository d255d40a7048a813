"""HTTP server: requests in, calls of the engine, responses out.

Imports access, bootstrap, engine, ingest, mcp, memory, operations, ports, streams and text.
"""
