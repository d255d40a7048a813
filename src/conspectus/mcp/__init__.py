"""Server of the Model Context Protocol over any engine.

Imports engine, graph, memory, ports, text and window.
"""
