"""APIs for single domains over the engine; each keeps the words of its domain.

Imports bootstrap, bridge, engine, graph, ingest, integrations, memory, ports and text.
"""
