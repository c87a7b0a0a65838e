#!/usr/bin/env python3
"""remote_agent.py [TLS]: the official Python SDK's HTTP and WebSocket server under hypercorn, over TLS
if TLS names a directory with cert.pem and key.pem, with an agent that acts as turner.py does. Prints
`listening PORT` on stdout, and a line for each request.

It runs in the environment that install.sh makes for the Python SDK.
"""
import asyncio
import socket
import sys
from uuid import uuid4

import hypercorn.asyncio
from acp import (Agent, InitializeResponse, LoadSessionResponse, NewSessionResponse, PromptResponse, text_block,
                 update_agent_message, update_user_message)
from acp.http.asgi import create_asgi_app
from acp.schema import AgentCapabilities, PermissionOption, ToolCallUpdate
from hypercorn.config import Config

SESSIONS = {}


class Turner(Agent):
    def on_connect(self, conn):
        self.conn = conn

    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=1, agent_capabilities=AgentCapabilities(load_session=True))

    async def new_session(self, **_):
        session = uuid4().hex
        SESSIONS[session] = []
        return NewSessionResponse(session_id=session)

    async def load_session(self, session_id, **_):
        for text in SESSIONS[session_id]:
            await self.conn.session_update(session_id=session_id, update=update_user_message(text_block(text)))
        return LoadSessionResponse()

    async def send_text(self, session_id, text):
        await self.conn.session_update(session_id=session_id, update=update_agent_message(text_block(text)))

    async def prompt(self, session_id, prompt, **_):
        text = "".join(getattr(block, "text", "") for block in prompt)
        SESSIONS[session_id].append(text)
        await self.send_text(session_id, "begun: " + text)
        if "wait" in text:
            self.cancelled = asyncio.Event()
            await self.cancelled.wait()
            return PromptResponse(stop_reason="cancelled")
        read = await self.conn.read_text_file(session_id=session_id, path="/seed.txt")
        choice = await self.conn.request_permission(
            session_id=session_id, tool_call=ToolCallUpdate(tool_call_id="t1", title="write"),
            options=[PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
                     PermissionOption(option_id="no", name="No", kind="reject_once")])
        if getattr(choice.outcome, "option_id", None) == "yes":
            await self.conn.write_text_file(session_id=session_id, path="/out.txt", content=read.content.upper())
        await self.send_text(session_id, "done: " + text)
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **_):
        self.cancelled.set()


endpoint = create_asgi_app(lambda conn: Turner())


async def app(scope, receive, send):
    if scope["type"] in ("http", "websocket"):
        method = scope.get("method", "UPGRADE")
        print("asked %s HTTP/%s" % (method, scope["http_version"]), flush=True)
    await endpoint(scope, receive, send)


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    config = Config()
    config.bind = ["fd://%d" % listener.fileno()]
    config.loglevel = "ERROR"
    if len(sys.argv) > 1:
        config.certfile, config.keyfile = sys.argv[1] + "/cert.pem", sys.argv[1] + "/key.pem"
    print("listening %d" % listener.getsockname()[1], flush=True)
    await hypercorn.asyncio.serve(app, config)


asyncio.run(main())
