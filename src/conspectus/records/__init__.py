"""Records on SQLAlchemy Core: the system of record."""
