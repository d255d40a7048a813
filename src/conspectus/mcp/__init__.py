"""Server of the Model Context Protocol over any engine.

Imports engine, graph, memory, operations, ports, text and window.
"""
