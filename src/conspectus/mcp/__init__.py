"""Server of the Model Context Protocol over any engine.

Imports client, engine, facades, graph, memory, ports, streams, text and window.
"""
