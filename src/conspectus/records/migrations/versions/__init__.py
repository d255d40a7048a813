"""One file per step, in order; a released step never changes."""
