"""A graph without a real model: it echoes, streams steps and words, interrupts, and fails."""

import asyncio
from typing import Annotated, TypedDict

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt


class State(TypedDict):
    messages: Annotated[list, add_messages]


def last_text(state):
    return state["messages"][-1].content


async def first(state):
    text = last_text(state)
    if text == "fail":
        raise ValueError("it was asked to fail")
    if text == "slow":
        await asyncio.sleep(120)
    if text == "words":
        get_stream_writer()({"step": "thinking"})
        model = FakeListChatModel(responses=["One two three. "])
        return {"messages": [await model.ainvoke(state["messages"])]}
    turns = sum(message.type == "human" for message in state["messages"])
    return {"messages": [AIMessage(f"{turns}: you said {text}. ")]}


def second(state):
    asked = [m.content for m in state["messages"] if m.type == "human"][-1]
    if asked == "review":
        answer = interrupt({"action_requests": [{"name": "rm", "args": {"path": "x"}}], "review_configs": []})
        return {"messages": [AIMessage("Decided: " + answer["decisions"][0]["type"])]}
    if asked == "form":
        return {"messages": [AIMessage(f"Answered: {interrupt('Which day?')}")]}
    return {"messages": [AIMessage("That is all.")]}


graph = StateGraph(State)
graph.add_node("first", first)
graph.add_node("second", second)
graph.add_edge(START, "first")
graph.add_edge("first", "second")
graph.add_edge("second", END)
graph = graph.compile()
