"""The original's place for approval. Here it is `handrail.approval`, and the judge of commands `handrail.judge`."""

from ..base.lazy_module import lazy_module

_NAMES = ("DANGEROUS_PATTERNS", "detect_dangerous_command", "ApprovalGate", "Decision")
_HOMES = dict.fromkeys(_NAMES, "handrail.approval")
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_module(__name__, _HOMES)
