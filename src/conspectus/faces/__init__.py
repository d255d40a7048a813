"""Thin faces of the engine: a domain's words in, a domain's words out."""
