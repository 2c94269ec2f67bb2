"""Be the agent of your editor: Zed, JetBrains, Neovim, Emacs.

The editor has to speak the Agent Client Protocol.

The editor starts this command and talks with it over stdin and stdout. Approvals are asked in the editor, and can be answered
in the console, a chat or with `handrail approvals` as well.

Examples:
  handrail acp
  handrail acp --editor-terminals
"""

import asyncio
from importlib.util import find_spec
from typing import Annotated

from ...errors import ToolUnavailable
from ..options import Model, option
from ..runtime import log_as_notes

Terminals = Annotated[bool, option("--editor-terminals", "Run commands in the editor's terminals.")]


def acp(model: Model = None, editor_terminals: Terminals = False) -> None:
    if find_spec("acp") is None:
        raise ToolUnavailable("this needs the package agent-client-protocol; pip install 'handrail[acp]'")
    from ...serve.acp.agent_server import serve  # a heavy optional dependency

    log_as_notes()
    asyncio.run(serve(model, terminals=editor_terminals))
