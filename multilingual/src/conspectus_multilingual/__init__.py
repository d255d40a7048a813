"""The files of multilingual-e5-small, which Conspectus reads where `CONSPECTUS_EMBEDDER=multilingual`."""
