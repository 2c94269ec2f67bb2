"""A session's tools for the agent frameworks of others, one module for each. What they share is in `tools`.

A framework is imported only by the module that is named after it. Without an approver of the session's own, a call that has to
be asked about becomes the framework's own request for approval, and is resumed by the framework.
"""
