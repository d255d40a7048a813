"""Operations: each is declared once, and its HTTP route, client method and command are derived from that.

Imports engine.
"""
