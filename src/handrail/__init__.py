"""Handrail: a tools runtime for LLM agents.

Names are loaded when they are first used, so importing the package costs nothing and does nothing.
"""

from .base.lazy_module import stubbed_module

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = stubbed_module(__name__, __file__)
__all__.append("__version__")
