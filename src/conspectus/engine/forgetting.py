"""How memories go, and how they are carried elsewhere."""

from conspectus.engine.remembering import Remembering


class Forgetting(Remembering):
    """Memories on their way out."""
