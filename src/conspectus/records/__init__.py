"""Records on SQLAlchemy Core: the system of record.

Imports ports and text.
"""
