"""Context windows: hits packed into an exact number of tokens, rendered and explained.

Imports text.
"""

from conspectus.window.build import build_window
from conspectus.window.render import Renderer, renderer_by_name

__all__ = ["Renderer", "build_window", "renderer_by_name"]
