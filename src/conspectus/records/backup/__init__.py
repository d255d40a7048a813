"""A store in a folder as one file, and such a file as a store again."""
