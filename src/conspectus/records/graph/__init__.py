"""Nodes, edges and mentions in SQL."""
