"""Long work of a server: pages and files taken in, stores elsewhere followed."""
