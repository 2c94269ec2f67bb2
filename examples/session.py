"""A session: one user's tools, with their own folder, approver and grants, closed together."""

import asyncio
import tempfile

import handrail
from handrail.approval import ApprovalRequest, Decision


async def ask(request: ApprovalRequest) -> Decision:
    print("asked:", request.text)
    return Decision.ONCE


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with handrail.session(config=handrail.Config(), cwd=folder, toolsets=["coding"], approver=ask) as s:
            written = await s.call("write_file", {"path": "a.txt", "content": "one\n"})
            print(written.changes[0].after, end="")
            message = {
                "tool_calls": [{"id": "c1", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}}]
            }
            print((await s.run(message))[0]["tool_call_id"])
            question = await s.preview("terminal", {"command": "rm -rf build"})
            print("would ask:", isinstance(question, ApprovalRequest))
            print((await s.call("terminal", {"command": "rm -rf build"})).data["exit_code"])


asyncio.run(main())
