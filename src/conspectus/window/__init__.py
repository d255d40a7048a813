"""The window: hits packed into an exact number of tokens, rendered, and every decision explained."""

from conspectus.window.build import build_window
from conspectus.window.render import Renderer, renderer_named

__all__ = ["Renderer", "build_window", "renderer_named"]
