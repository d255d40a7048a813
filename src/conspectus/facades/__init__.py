"""APIs for single domains over the engine; each keeps the words of its domain."""
