"""traced.py: client and agent of traces.py, with the official Python SDK and OpenTelemetry's.

    traced.py client RELAY URL     an editor that opens a span for its first turn and sends its context
    traced.py agent                an agent that writes the received `traceparent` to a file
"""
import asyncio
import os
import sys
from uuid import uuid4

from acp import InitializeResponse, NewSessionResponse, PromptResponse, run_agent, spawn_agent_process, text_block
from acp import Agent, update_agent_message
from acp.interfaces import Client


class Echo(Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, **_):
        return NewSessionResponse(session_id=uuid4().hex)

    async def prompt(self, prompt, session_id, **meta):
        with open(os.environ["SEEN"], "a") as file:
            print(meta.get("traceparent"), file=file)
        await self.client.session_update(session_id=session_id, update=update_agent_message(text_block("yes")))
        return PromptResponse(stop_reason="end_turn")


class Editor(Client):
    async def session_update(self, session_id, update, **_):
        pass


async def converse(relay, url):
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.propagate import inject
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    tracer = trace.get_tracer("editor")
    environment = {**os.environ, "OTEL_SERVICE_NAME": "near"}
    words = [text_block("the editor's own words")]
    async with spawn_agent_process(Editor(), relay, "connect", "--trace-context", "insert", url,
                                   env=environment) as (agent, _):
        await agent.initialize(protocol_version=1)
        session = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        with tracer.start_as_current_span("a turn of the editor"):
            meta = {}
            inject(meta)
            await agent.prompt(session_id=session, prompt=words, **meta)
        await agent.prompt(session_id=session, prompt=words)
    provider.shutdown()


if sys.argv[1] == "agent":
    asyncio.run(run_agent(Echo()))
else:
    asyncio.run(converse(*sys.argv[2:]))
