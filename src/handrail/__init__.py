"""Handrail: a tools runtime for LLM agents.

Names are loaded when they are first used, so importing the package costs nothing and does nothing.
"""

from .base.lazy_module import lazy_face

__version__ = "0.1.0"
__getattr__, __dir__ = lazy_face(__name__, __file__)
