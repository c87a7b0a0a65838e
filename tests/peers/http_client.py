#!/usr/bin/env python3
"""http_client.py: the official Python SDK as a remote client, with the conversation of http_client.mjs.

    http_client.py --url http://HOST:PORT/acp|ws://… [--http2] --cwd DIR --prompt TEXT
                   --cancel-prompt TEXT [--auth METHOD] [--expect LIST] [--token TOKEN]

Without --http2 it uses HTTP/1.1, with it cleartext HTTP/2. Only the SDK implements the protocol.
"""
import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from acp import RequestError, connect_to_agent, text_block
from acp.interfaces import Client
from acp.schema import ClientCapabilities, FileSystemCapabilities

summary = {"updates": {}, "sessions": {}, "permissions": 0, "fs": [], "stops": [], "loaded": None, "file": None}


class Editor(Client):
    def __init__(self, cwd):
        self.cwd = Path(cwd).resolve()
        self.enough = asyncio.Event()

    def inside(self, path):
        full = Path(path).resolve()
        if self.cwd not in full.parents:
            raise ValueError("outside: %s" % path)
        return full

    async def request_permission(self, session_id, tool_call, options, **_):
        summary["permissions"] += 1
        allow = next((one for one in options if one.kind == "allow_once"), options[0])
        return {"outcome": {"outcome": "selected", "optionId": allow.option_id}}

    async def session_update(self, session_id, update, **_):
        kind = update.session_update
        summary["updates"][kind] = summary["updates"].get(kind, 0) + 1
        summary["sessions"][session_id] = summary["sessions"].get(session_id, 0) + 1
        if kind == "agent_message_chunk":
            self.enough.set()

    async def read_text_file(self, path, session_id, **_):
        summary["fs"].append("read %s" % path)
        return {"content": self.inside(path).read_text()}

    async def write_text_file(self, content, path, session_id, **_):
        summary["fs"].append("write %s" % path)
        self.inside(path).write_text(content)
        return None


async def converse(options):
    editor = Editor(options.cwd)
    headers = {"Authorization": "Bearer " + options.token} if options.token else None
    if options.url.startswith("http"):
        from acp.http import create_http_stream
        extra = {}
        if options.http2:
            import httpx
            extra["client"] = httpx.AsyncClient(http1=False, http2=True, timeout=None)
        transport = create_http_stream(options.url, headers=headers, **extra)
    else:
        from acp.ws import create_websocket_stream
        transport = await create_websocket_stream(options.url, headers=headers)
    agent = connect_to_agent(editor, transport)
    try:
        able = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))
        hello = await agent.initialize(protocol_version=1, client_capabilities=able)
        if options.auth:
            await agent.authenticate(method_id=options.auth)
        one = (await agent.new_session(cwd=options.cwd, mcp_servers=[])).session_id
        two = (await agent.new_session(cwd=options.cwd, mcp_servers=[])).session_id
        ask = lambda session, text: agent.prompt(session_id=session, prompt=[text_block(text)])
        for answer in await asyncio.gather(ask(one, options.prompt), ask(two, options.prompt)):
            summary["stops"].append(answer.stop_reason)
        editor.enough.clear()
        turn = asyncio.ensure_future(ask(one, options.cancel_prompt))
        enough = asyncio.ensure_future(editor.enough.wait())
        await asyncio.wait([turn, enough], return_when=asyncio.FIRST_COMPLETED)
        await agent.cancel(session_id=one)
        summary["stops"].append((await turn).stop_reason)
        if hello.agent_capabilities and hello.agent_capabilities.load_session:
            summary["loaded"] = await load(agent, two, options.cwd)
        if len(summary["sessions"]) < 2:
            raise RuntimeError("a session sent no update")
    finally:
        await agent.close()
        if hasattr(transport, "close"):
            await transport.close()


async def load(agent, session, cwd):
    """The number of updates that session/load replayed, or the agent's error."""
    before = summary["sessions"].get(session, 0)
    try:
        await agent.load_session(cwd=cwd, session_id=session, mcp_servers=[])
    except RequestError as error:
        return str(error)
    # The history may arrive after the answer, because it is on another stream.
    for _ in range(100):
        if summary["sessions"].get(session, 0) > before:
            break
        await asyncio.sleep(0.05)
    return summary["sessions"].get(session, 0) - before


PROOFS = {
    "load": lambda: isinstance(summary["loaded"], int) and summary["loaded"] > 0,
    "text": lambda: summary["updates"].get("agent_message_chunk", 0) > 1,
    "tool_call": lambda: summary["updates"].keys() & {"tool_call", "tool_call_update"},
    "permission": lambda: summary["permissions"],
    "read": lambda: any(call.startswith("read ") for call in summary["fs"]),
    "write": lambda: any(call.startswith("write ") for call in summary["fs"]),
    "end_turn": lambda: summary["stops"][:2] == ["end_turn"] * 2,
    "cancelled": lambda: summary["stops"][2:] == ["cancelled"],
    "answered": lambda: len(summary["stops"]) == 3,
}


def main():
    parser = argparse.ArgumentParser()
    for name in ("--url", "--cwd", "--prompt", "--cancel-prompt", "--auth", "--file", "--token"):
        parser.add_argument(name)
    parser.add_argument("--sdk")
    parser.add_argument("--cancel-after")
    parser.add_argument("--expect", default="")
    parser.add_argument("--http2", action="store_true")
    options = parser.parse_args()
    try:
        asyncio.run(asyncio.wait_for(converse(options), 90))
    except BaseException as error:  # Any error is part of the summary.
        summary["error"] = repr(error)
    if options.file:
        path = Path(options.cwd, options.file)
        summary["file"] = path.read_text() if path.exists() else None
    summary["missing"] = [name for name in options.expect.split(",") if name and not PROOFS[name]()]
    print(json.dumps(summary))
    sys.stdout.flush()
    os._exit(1 if summary["missing"] or "error" in summary else 0)


main()
