"""The documentation site: pages made from code, beside those of docs/, built by Sphinx."""
