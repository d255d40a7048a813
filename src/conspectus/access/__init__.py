"""Permission: who may see what."""
