"""What agents remember."""

from conspectus.engine.linking import Linking


class Remembering(Linking):
    """Memories as they are stored and recalled."""
