"""Server of the Model Context Protocol over any engine.

Imports engine, graph, memory, ports, streams, text and window.
"""
