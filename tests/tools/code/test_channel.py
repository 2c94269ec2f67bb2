"""Who comes to the door of a script, and what is said to those who may not enter."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from handrail.environments.local_environment import LocalEnvironment
from handrail.errors import CallCancelled, ToolFailed
from handrail.tools.code.channel import Listener, ScriptGone
from handrail.tools.code.script_host.supervisor import FRAME
from handrail.types import CancelToken

from ...support import wait_until


def _come(path: str, words: bytes) -> socket.socket:
    end = socket.socket(socket.AF_UNIX)
    end.connect(path)
    end.settimeout(60)
    end.sendall(words)
    return end


def test_only_who_knows_the_token_is_let_in(work: Path) -> None:
    with LocalEnvironment(str(work)) as env, Listener(with_socket=True) as listener:
        process = env.background("cat > /dev/null; sleep 1000")
        assert Path(listener.path).parent.stat().st_mode & 0o777 == 0o700
        stranger = _come(listener.path, b"0" * len(listener.token))
        friend = _come(listener.path, listener.token.encode() + FRAME.pack(b"O", 0, 2) + b"hi")
        channel = listener.open(process, b"", cancel=CancelToken())
        assert stranger.recv(10) == b""
        assert list(channel.frames(5)) == [(b"O", 0, b"hi")]
        channel.send(b"R", 3, b"answer")
        assert friend.recv(100) == FRAME.pack(b"R", 3, 6) + b"answer"
        friend.close()
        with pytest.raises(ScriptGone):
            list(channel.frames(5))
        channel.send(b"R", 3, b"nobody hears this")
        stranger.close()
        process.forget()
    assert not Path(listener.path).parent.exists()


def test_noise_before_the_token_is_no_frame(work: Path) -> None:
    with LocalEnvironment(str(work)) as env, Listener(with_socket=False) as listener:
        words = "".join(f"\\x{byte:02x}" for byte in FRAME.pack(b"O", 0, 2) + b"hi")
        process = env.background(
            f"echo welcome; printf {listener.token[:5]}; echo; printf {listener.token}; printf '{words}'; sleep 1000"
        )
        channel = listener.open(process, b"", cancel=CancelToken())
        found: list[object] = []
        wait_until(lambda: found.extend(channel.frames(0.1)) or found)
        assert found == [(b"O", 0, b"hi")]
        process.forget()


def test_a_frame_of_absurd_length_ends_the_conversation(work: Path) -> None:
    with LocalEnvironment(str(work)) as env, Listener(with_socket=True) as listener:
        process = env.background("sleep 1000")
        friend = _come(listener.path, listener.token.encode() + FRAME.pack(b"C", 1, (1 << 32) - 1))
        channel = listener.open(process, b"", cancel=CancelToken())
        with pytest.raises(ScriptGone):
            list(channel.frames(5))
        friend.close()
        process.forget()


@pytest.mark.parametrize("with_socket", [True, False])
def test_nobody_comes(work: Path, with_socket: bool) -> None:
    with LocalEnvironment(str(work)) as env, Listener(with_socket=with_socket) as listener:
        process = env.background("echo something is wrong here; exit 3")
        with pytest.raises(ToolFailed, match="something is wrong here"):
            listener.open(process, b"", cancel=CancelToken())
        process.forget()
        cancel = CancelToken()
        process = env.background("sleep 1000")
        threading.Timer(0.1, cancel.cancel).start()
        with pytest.raises(CallCancelled):
            listener.open(process, b"", cancel=cancel)
        process.forget()
