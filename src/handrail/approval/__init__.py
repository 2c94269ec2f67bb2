"""Approval: decide whether an action may happen, and ask the user well where that is not clear.

`gate` is the way in: `ApprovalGate.review` takes actions and raises `Denied`. Behind it, in the order of a review:
`settings` (what the user configured), `action_review` (find what is dangerous, with `handrail.judge` and `typed_input`),
`policy` with `allowlist` (decide without asking), `requests` (ask, wait for the first answer), `approvers` (who is
asked, and how), `display` (what is shown, without secrets), `questions` (what is asked, the preview that binds the yes, and what
the model gets for a no), `records` (what is kept, and judging it again under another policy) and `suggestions`.
"""

from ..base.lazy_module import stubbed_module

__getattr__, __dir__, __all__ = stubbed_module(__name__, __file__)
