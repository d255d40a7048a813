"""Embedders, rerankers, chat models and tokenizers, local and hosted.

Imports ports and text.
"""

from conspectus.settings import forbid_telemetry

# A package is imported before its modules, and so before any library that they bring.
forbid_telemetry()
