"""APIs for single domains over the engine; each keeps the words of its domain.

Imports bootstrap, engine, graph, ingest, integrations, memory, ports and text.
"""
