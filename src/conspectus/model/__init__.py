"""What Conspectus knows, as frozen dataclasses of the standard library."""
