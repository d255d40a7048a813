"""Server of the Model Context Protocol over any engine.

Imports engine, memory, operations, ports, text and window.
"""
