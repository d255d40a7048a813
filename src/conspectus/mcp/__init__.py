"""Server of the Model Context Protocol over any engine.

Imports engine, facades, graph, memory, ports, streams, text and window.
"""
