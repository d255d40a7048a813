"""The HTTP server: it translates requests into calls of the engine, and what comes back into answers."""
