"""The original's place for approval. Here it is `handrail.approval`, and the judge of commands `handrail.judge`."""

from ..base.lazy_module import lazy_module

__getattr__, __dir__, __all__ = lazy_module(
    __name__, {"handrail.approval": "DANGEROUS_PATTERNS detect_dangerous_command ApprovalGate Decision"}
)
