"""How well the production path answers judged questions."""
