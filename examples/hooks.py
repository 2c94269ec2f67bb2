"""Hooks around every call: one that forbids, one that changes, one that watches."""

from handrail import hookimpl
from handrail.model_tools import handle_function_call
from handrail.plugins import Block, Change, hooks


class HouseRules:
    """A policy: if it fails, the call is blocked."""

    @hookimpl(policy=True)
    def pre_tool_call(self, tool_name, args):
        if str(args.get("path", "")).endswith(".env"):
            return Block("secrets stay unread")
        if tool_name == "read_file" and args.get("limit", 0) > 100:
            return Change({**args, "limit": 100})
        return None


class Audit:
    """An observer: if it fails, that is logged and the call goes on."""

    @hookimpl
    def post_tool_call(self, tool_name, status, error_type, duration_ms):
        print(f"{tool_name}: {status} {error_type or ''} after {duration_ms:.1f} ms")


hooks.register(HouseRules())
hooks.register(Audit())

print(handle_function_call("read_file", {"path": "/srv/app/.env"}))
print(handle_function_call("read_file", {"path": "/nonexistent"}))
