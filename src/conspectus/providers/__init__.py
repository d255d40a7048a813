"""Models: embedders, rerankers, chat models, tokenizers and what else comes from a vendor or a package."""

from conspectus.settings import forbid_telemetry

# A package is imported before its modules, and so before any library that they bring.
forbid_telemetry()
