"""Deny, because nobody is there: what runs without a person runs only what needs none."""

from __future__ import annotations

from ...protocols import Answer, ApprovalRequest, Decision


class PolicyApprover:
    """For programs that run by themselves. What is to pass all the same is allowed in config.yaml beforehand."""

    name = "policy"

    def decide(self, request: ApprovalRequest) -> Answer:  # noqa: ARG002  an Approver's signature
        return Answer(Decision.DENY, self.name, "nobody is there to ask")
