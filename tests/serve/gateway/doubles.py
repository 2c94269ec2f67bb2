"""Telegram, Slack and Discord as their clients see them on the wire: what is sent is kept, what is told is given out.

Each double refuses a wrong token, as the real one does. What a real one checks beyond that is not here.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from aiohttp import WSMsgType, web

from tests.support import wait_until

ME = "900"


class Message:
    """Something that stands in a chat: all texts that it ever had, and the buttons that it has now."""

    def __init__(self, message_id: str, chat: str, text: str, buttons: list[str]) -> None:
        self.id, self.chat, self.texts, self.buttons = message_id, chat, [text], buttons

    def rewrite(self, text: str, buttons: list[str]) -> None:
        self.texts.append(text)
        self.buttons = buttons


class Double:
    """What the three have in common. `cut` drops who is connected."""

    kind = ""
    tokens: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.files: list[tuple[str, bytes]] = []
        self.refused = 0
        self._count = 1000
        self.loop = asyncio.new_event_loop()
        self._sockets: list[web.WebSocketResponse] = []
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name=self.kind, daemon=True)
        self._thread.start()
        assert started.wait(60)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        self._over = asyncio.Event()

        async def serve() -> None:
            app = web.Application(client_max_size=10_000_000)
            app.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            started.set()
            await self._over.wait()
            for socket in self._sockets:
                await socket.close()
            await runner.cleanup()

        self.loop.run_until_complete(serve())
        self.loop.close()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raise NotImplementedError

    async def _tell(self, value: Any) -> None:
        for socket in [each for each in self._sockets if not each.closed]:
            await socket.send_str(json.dumps(value))

    def tell(self, value: Any) -> None:
        asyncio.run_coroutine_threadsafe(self._tell(value), self.loop).result(60)

    @property
    def is_connected(self) -> bool:
        return any(not each.closed for each in self._sockets)

    def cut(self) -> None:
        async def drop() -> None:
            # Who is quick is back before the last one is closed.
            dropped, self._sockets = self._sockets, []
            for socket in dropped:
                await socket.close()

        asyncio.run_coroutine_threadsafe(drop(), self.loop).result(60)

    def next_id(self) -> str:
        self._count += 1
        return str(self._count)

    def _add(self, chat: Any, text: str, buttons: list[str]) -> Message:
        message = Message(self.next_id(), str(chat), text, buttons)
        self.messages.append(message)
        return message

    def _at(self, message_id: Any) -> Message:
        return next(each for each in self.messages if each.id == str(message_id))

    # For tests

    # How long a message takes to arrive.
    seconds_on_the_way = 0

    def say(
        self, chat: str, person: str, text: str, *, in_group: bool = False, mention: bool = False, reply_to: str = ""
    ) -> None:
        raise NotImplementedError

    def tap(self, message: Message, person: str, choice: str) -> None:
        raise NotImplementedError

    def hears(self, chat: str, words: str) -> Message:
        """The first message in the chat that has, or once had, these words."""
        found: list[Message] = []

        def has_come() -> bool:
            here = [each for each in self.messages if each.chat == chat]
            found[:] = [each for each in here if any(words in text for text in each.texts)]
            return bool(found)

        said: Callable[[], str] = lambda: f"nobody said {words!r}: {[each.texts for each in self.messages]}"  # noqa: E731  it is given to a function that calls it on failure
        wait_until(has_come, timeout=60, otherwise=said)
        return found[0]


class Telegram(Double):
    kind = "telegram"
    tokens: ClassVar = {"TELEGRAM_BOT_TOKEN": "900:telegram-token"}

    def __init__(self) -> None:
        self._updates: list[dict[str, Any]] = []
        self._polls = 0
        super().__init__()

    @property
    def is_connected(self) -> bool:
        return self._polls > 1

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        _, bot, method = request.path.split("/")
        if bot != f"bot{self.tokens['TELEGRAM_BOT_TOKEN']}":
            self.refused += 1
            return web.json_response({"ok": False, "error_code": 401, "description": "Unauthorized"}, status=401)
        if method == "sendDocument":
            form = await request.post()
            sent: Any = form["document"]
            self.files.append((sent.filename, sent.file.read()))
            return web.json_response({"ok": True, "result": _telegram_message(self.next_id(), form["chat_id"])})
        body = await request.json()
        return web.json_response({"ok": True, "result": await getattr(self, f"_{method}")(body)})

    async def _getMe(self, body: Any) -> Any:  # noqa: N802  named as the service's method
        return {"id": int(ME), "is_bot": True, "first_name": "Hand", "username": "hand_bot"}

    async def _getUpdates(self, body: Any) -> Any:  # noqa: N802  named as the service's method
        self._polls += 1
        if body["offset"] < 0:
            return self._updates[-1:]
        self._updates = [each for each in self._updates if each["update_id"] >= body["offset"]]
        for _ in range(50 if body.get("timeout") else 0):
            if self._updates:
                break
            await asyncio.sleep(0.02)
        return self._updates

    async def _sendMessage(self, body: Any) -> Any:  # noqa: N802  named as the service's method
        sent = self._add(body["chat_id"], str(body["text"]), _keyboard(body))
        return _telegram_message(sent.id, body["chat_id"])

    async def _editMessageText(self, body: Any) -> Any:  # noqa: N802  named as the service's method
        self._at(body["message_id"]).rewrite(str(body["text"]), _keyboard(body))
        return True

    async def _answerCallbackQuery(self, body: Any) -> Any:  # noqa: N802  named as the service's method
        return True

    def _update(self, **what: Any) -> None:
        self.loop.call_soon_threadsafe(self._updates.append, {"update_id": int(self.next_id()), **what})

    def say(
        self, chat: str, person: str, text: str, *, in_group: bool = False, mention: bool = False, reply_to: str = ""
    ) -> None:
        said = _telegram_message("1", chat, "group" if in_group else "private")
        said["date"] -= self.seconds_on_the_way
        text = f"@hand_bot {text}" if mention else text
        replied = {"reply_to_message": _telegram_message(reply_to, chat)} if reply_to else {}
        self._update(message={**said, **replied, "from": _telegram_person(person), "text": text})

    def tap(self, message: Message, person: str, choice: str) -> None:
        where = _telegram_message(message.id, message.chat)
        who = _telegram_person(person)
        self._update(callback_query={"id": "q", "chat_instance": "c", "from": who, "message": where, "data": choice})


def _telegram_message(message_id: str, chat: Any, kind: str = "private") -> dict[str, Any]:
    return {"message_id": int(message_id), "date": int(time.time()), "chat": {"id": int(chat), "type": kind}}


def _telegram_person(person: str) -> dict[str, Any]:
    return {"id": int(person), "is_bot": False, "first_name": "Somebody"}


def _keyboard(body: dict[str, Any]) -> list[str]:
    rows = body.get("reply_markup", {}).get("inline_keyboard", [])
    return [button["callback_data"] for row in rows for button in row]


class Slack(Double):
    kind = "slack"
    tokens: ClassVar = {"SLACK_APP_TOKEN": "xapp-token", "SLACK_BOT_TOKEN": "xoxb-token"}

    def __init__(self) -> None:
        self.acknowledged: list[str] = []
        self._unacknowledged: dict[str, dict[str, Any]] = {}
        # Until this is set, who posts is not told the id of the message that everybody sees already.
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        super().__init__()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = request.path.strip("/")
        if method == "socket":
            return await self._socket(request)
        if method == "upload":
            self.files.append(("answer.md", await request.read()))
            return web.Response(text="OK")
        wanted = self.tokens["SLACK_APP_TOKEN" if method == "apps.connections.open" else "SLACK_BOT_TOKEN"]
        if request.headers.get("authorization") != f"Bearer {wanted}":
            self.refused += 1
            return web.json_response({"ok": False, "error": "invalid_auth"})
        return web.json_response({"ok": True, **await self._answer(method, request)})

    async def _answer(self, method: str, request: web.Request) -> dict[str, Any]:
        match method:
            case "auth.test":
                return {"user_id": f"U{ME}"}
            case "apps.connections.open":
                return {"url": f"ws://{request.host}/socket"}
            case "chat.postMessage":
                body = await request.json()
                added = self._add(body["channel"], body["text"], _elements(body))
                await self.may_answer.wait()
                return {"ts": added.id}
            case "chat.update":
                body = await request.json()
                self._at(body["ts"]).rewrite(body["text"], _elements(body))
                return {}
            case "files.getUploadURLExternal":
                return {"upload_url": f"http://{request.host}/upload", "file_id": "F1"}
            case "files.completeUploadExternal":
                return {}
        raise web.HTTPNotFound

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(json.dumps({"type": "hello"}))
        self._sockets.append(socket)
        for envelope in list(self._unacknowledged.values()):
            await socket.send_str(json.dumps(envelope))
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self.acknowledged.append(json.loads(message.data)["envelope_id"])
                self._unacknowledged.pop(self.acknowledged[-1], None)
        return socket

    def _envelope(self, kind: str, payload: dict[str, Any]) -> None:
        """Slack sends it again, on another connection, until it is acknowledged."""
        number = self.next_id()
        self._unacknowledged[number] = {"envelope_id": number, "type": kind, "payload": payload}
        self.tell(self._unacknowledged[number])

    def say(
        self, chat: str, person: str, text: str, *, in_group: bool = False, mention: bool = False, reply_to: str = ""
    ) -> None:
        if (
            text.startswith("/") and not in_group and not reply_to
        ):  # Slack keeps these to itself, and tells who has registered them
            command, _, rest = text.partition(" ")
            where = {"command": command, "text": rest, "channel_id": chat, "user_id": person}
            self._envelope("slash_commands", where)
            return
        event = {"type": "message", "channel": chat, "user": person, "text": text, "ts": f"{time.time():.6f}"}
        if reply_to:
            event["thread_ts"] = reply_to
        event["channel_type"] = "channel" if in_group else "im"
        self._envelope("events_api", {"event": event})
        if mention:
            self._envelope("events_api", {"event": {**event, "type": "app_mention", "text": f"<@U{ME}> {text}"}})

    def tap(self, message: Message, person: str, choice: str) -> None:
        where = {"channel": {"id": message.chat}, "message": {"ts": message.id}, "user": {"id": person}}
        self._envelope("interactive", {"type": "block_actions", "actions": [{"value": choice}], **where})


def _elements(body: dict[str, Any]) -> list[str]:
    return [each["value"] for block in body["blocks"] if block["type"] == "actions" for each in block["elements"]]


class Discord(Double):
    kind = "discord"
    tokens: ClassVar = {"DISCORD_BOT_TOKEN": "discord-token"}

    def __init__(self) -> None:
        self._missed: list[Any] = []
        super().__init__()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path.strip("/").split("/")
        if path == ["socket"]:
            return await self._socket(request)
        if path[0] == "interactions":  # the token is in the path
            return _discord_json({"interaction": {"id": path[1], "type": 3}})
        if request.headers.get("authorization") != f"Bot {self.tokens['DISCORD_BOT_TOKEN']}":
            self.refused += 1
            return _discord_json({"message": "401: Unauthorized", "code": 0}, status=401)
        match path:
            case ["users", "@me"]:
                return _discord_json(_discord_person(ME, bot=True))
            case ["oauth2", "applications", "@me"]:
                about = {
                    "id": ME,
                    "owner": _discord_person("1"),
                    "name": "hand",
                    "description": "",
                    "icon": None,
                    "verify_key": "",
                    "flags": 0,
                }
                return _discord_json({**about, "bot_public": False, "bot_require_code_grant": False, "team": None})
            case ["gateway", "bot"]:
                return _discord_json({"url": f"ws://{request.host}/socket"})
            case ["channels", chat, "messages", *rest]:
                return await self._message(request, chat, rest)
        raise web.HTTPNotFound

    async def _message(self, request: web.Request, chat: str, rest: list[str]) -> web.Response:
        if request.content_type.startswith("multipart/"):
            form = await request.post()
            sent: Any = form["files[0]"]
            self.files.append((sent.filename, sent.file.read()))
            return _discord_json(_discord_message(self.next_id(), chat, ME, ""))
        body = await request.json()
        assert body["allowed_mentions"] == {"parse": []}
        if len(body["content"]) > 2000:
            return _discord_json({"message": "Must be 2000 or fewer in length."}, status=400)
        buttons = [each["custom_id"] for row in body.get("components", ()) for each in row["components"]]
        if rest:
            self._at(rest[0]).rewrite(body["content"], buttons)
            return _discord_json(_discord_message(rest[0], chat, ME, body["content"]))
        assert body["enforce_nonce"]
        sent_id = self._add(chat, body["content"], buttons).id
        return _discord_json(_discord_message(sent_id, chat, ME, body["content"]))

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(json.dumps({"op": 10, "d": {"heartbeat_interval": 1000}}))
        async for message in socket:
            told = json.loads(message.data)
            if told["op"] == 1:
                await socket.send_str(json.dumps({"op": 11}))
            if told["op"] in (2, 6):
                if told["d"]["token"] != self.tokens["DISCORD_BOT_TOKEN"]:
                    await socket.close(code=4004)
                    break
                missed, self._missed = self._missed if told["op"] == 6 else [], []
                for each in (*missed, {"op": 0, "s": 1, **self._welcome(told["op"] == 6, request.host)}):
                    await socket.send_str(json.dumps(each))
                self._sockets.append(socket)
        return socket

    def _welcome(self, is_back: bool, host: str) -> dict[str, Any]:
        if is_back:
            return {"t": "RESUMED", "d": {}}
        about = {"session_id": "s", "resume_gateway_url": f"ws://{host}/socket", "application": {"id": ME, "flags": 0}}
        return {"t": "READY", "d": {"v": 10, "user": _discord_person(ME, bot=True), "guilds": [], **about}}

    async def _tell(self, value: Any) -> None:
        """Who was cut off is told later, when it resumes its session."""
        if not self.is_connected:
            self._missed.append(value)
        await super()._tell(value)

    def say(
        self, chat: str, person: str, text: str, *, in_group: bool = False, mention: bool = False, reply_to: str = ""
    ) -> None:
        at = time.time() - self.seconds_on_the_way
        written = (int(at * 1000) - 1_420_070_400_000) << 22  # Discord's ids are times
        data = _discord_message(str(written + int(self.next_id()) % 4_000_000), chat, person, text)
        if reply_to:
            data["message_reference"] = {"message_id": reply_to, "channel_id": chat}
        if mention:
            data |= {"content": f"<@{ME}> {text}", "mentions": [_discord_person(ME, bot=True)]}
        self.tell({"op": 0, "s": 2, "t": "MESSAGE_CREATE", "d": data | ({"guild_id": "1"} if in_group else {})})

    def tap(self, message: Message, person: str, choice: str) -> None:
        where = {"channel_id": message.chat, "channel": {"id": message.chat, "type": 1}}
        what = {"message": _discord_message(message.id, message.chat, ME, message.texts[-1]), "data": {
            "custom_id": choice, "component_type": 2}}  # fmt: skip
        about = {"id": self.next_id(), "application_id": ME, "token": "t", "version": 1, "type": 3, "entitlements": []}
        rest = {"user": _discord_person(person), "attachment_size_limit": 1, "authorizing_integration_owners": {}}
        self.tell({"op": 0, "s": 3, "t": "INTERACTION_CREATE", "d": {**about, **where, **what, **rest}})


def _discord_person(person: str, *, bot: bool = False) -> dict[str, Any]:
    return {"id": person, "username": f"person{person}", "discriminator": "0", "avatar": None, "bot": bot}


def _discord_message(message_id: str, chat: str, person: str, text: str) -> dict[str, Any]:
    lists: dict[str, list[Any]] = {
        name: [] for name in ("attachments", "embeds", "mentions", "mention_roles", "components")
    }
    flags = {"type": 0, "pinned": False, "mention_everyone": False, "tts": False, "edited_timestamp": None}
    who = {"author": _discord_person(person, bot=person == ME), "timestamp": "2026-01-01T00:00:00+00:00"}
    return {"id": message_id, "channel_id": chat, "content": text, **lists, **flags, **who}


def _discord_json(value: Any, *, status: int = 200) -> web.Response:
    """Discord names no charset, and its clients look at the whole header."""
    return web.Response(body=json.dumps(value).encode(), status=status, headers={"content-type": "application/json"})
