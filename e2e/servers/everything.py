"""A server built with the Python SDK that has everything the conformance suites ask for.

It serves both eras at one URL. What it lists and answers is in everything.json. It prints one JSON
line with its `url`.
"""

import asyncio
import json
import re
import socket
import warnings
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

EVERYTHING = json.loads(Path(__file__).with_suffix(".json").read_text())
TOOLS = {tool["name"]: tool for tool in EVERYTHING["tools"]}
MODERN = "2026-07-28"
MISSING_CAPABILITY = -32021
# By method: what a client must declare to be asked so, the request, and its result.
ASKS = {
    "elicitation/create": ("elicitation", types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": ("sampling", types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": ("roots", types.ListRootsRequest, types.ListRootsResult),
}

bus = InMemorySubscriptionBus()


def result(document: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult.model_validate(document)


def said(text: str) -> types.CallToolResult:
    return result({"content": [{"type": "text", "text": text}]})


def filled(document: Any, arguments: dict[str, Any]) -> Any:
    """A document with `$name` replaced by the arguments of these names."""
    if isinstance(document, dict):
        return {key: filled(value, arguments) for key, value in document.items()}
    if isinstance(document, list):
        return [filled(value, arguments) for value in document]
    if isinstance(document, str):
        return re.sub(r"\$(\w+)", lambda name: str(arguments.get(name[1], name[0])), document)
    return document


def declared(ctx: Any) -> dict[str, Any]:
    found = ctx.session.client_capabilities
    return found.model_dump(by_alias=True, exclude_none=True) if found else {}


async def asked(name: str, ctx: Any, params: Any) -> types.InputRequiredResult | None:
    """What a tool or prompt still has to ask; nothing when all answers are there."""
    rounds = EVERYTHING["asks"].get(name)
    if rounds is None:
        return None
    rounds = filled(rounds, params.arguments or {})
    if name == "test_input_required_result_capabilities":
        able = declared(ctx)
        rounds = [{key: one for key, one in step.items() if key in able} for step in rounds]
    if ctx.protocol_version != MODERN:
        for step in rounds:
            for request in step.values():
                await ask(ctx, request)
        return None
    number = json.loads(params.request_state)["round"] if params.request_state else 0
    answers = (ctx.params or {}).get("inputResponses") or {}
    if all(isinstance(answers.get(key), dict) for key in rounds[number]):
        number += 1
    if number == len(rounds):
        return None
    needed = {ASKS[one["method"]][0] for one in rounds[number].values()}
    missing = {capability: {} for capability in sorted(needed - declared(ctx).keys())}
    if missing:
        text = f"the client did not declare {', '.join(missing)}"
        raise MCPError(MISSING_CAPABILITY, text, {"requiredCapabilities": missing})
    state = json.dumps({"round": number})
    asking = {"inputRequests": rounds[number], "requestState": state}
    return types.InputRequiredResult.model_validate(asking)


async def ask(ctx: Any, request: dict[str, Any]) -> None:
    """Asks a client of an older revision, which answers while the call is open."""
    _, kind, answers = ASKS[request["method"]]
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    await ctx.session.send_request(kind.model_validate(request), answers, metadata=related)


async def progress(ctx: Any, step: int, total: int) -> None:
    token = (ctx.meta or {}).get("progress_token")
    if token is not None:
        params = types.ProgressNotificationParams(progress_token=token, progress=step, total=total)
        told = types.ProgressNotification(params=params)
        await ctx.session.send_notification(told, related_request_id=ctx.request_id)


async def log(ctx: Any, level: Any, text: str) -> None:
    await ctx.session.send_log_message(level, text, related_request_id=ctx.request_id)


async def run(name: str, ctx: Any) -> str | None:
    """What a tool does; `None` where it has nothing to say yet."""
    match name:
        case "test_tool_with_logging":
            for text in ("Tool execution started", "Tool processing data", "Done"):
                await log(ctx, "info", text)
                await asyncio.sleep(0.05)
            return "Logged"
        case "test_logging_tool":
            await log(ctx, "debug", "a debug message")
            await log(ctx, "error", "an error message")
            return "Logged"
        case "test_tool_with_progress":
            for step in (0, 50, 100):
                await progress(ctx, step, 100)
                await asyncio.sleep(0.05)
            return "Reported"
        case "test_reconnection":
            await asyncio.sleep(0.1)
            if ctx.close_sse_stream:
                await ctx.close_sse_stream()
            await asyncio.sleep(0.1)
            return "Reconnection test completed successfully"
        case "test_streaming_elicitation":
            await progress(ctx, 1, 2)
        case "test_trigger_tool_change":
            await bus.publish(ToolsListChanged())
            return "The list of tools changed"
        case "test_trigger_prompt_change":
            await bus.publish(PromptsListChanged())
            return "The list of prompts changed"
    return None


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult | types.InputRequiredResult:
    name = params.name
    if name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"no tool is called {name}")
    if name in EVERYTHING["results"]:
        return result(EVERYTHING["results"][name])
    done = await run(name, ctx)
    if done is not None:
        return said(done)
    return await asked(name, ctx, params) or said(f"state-ok: {name} has all answers")


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult | types.InputRequiredResult:
    if params.name not in EVERYTHING["messages"]:
        raise MCPError(types.INVALID_PARAMS, f"no prompt is called {params.name}")
    messages = filled(EVERYTHING["messages"][params.name], params.arguments or {})
    asking = await asked(params.name, ctx, params)
    return asking or types.GetPromptResult.model_validate(messages)


async def read_resource(_ctx: Any, params: Any) -> types.ReadResourceResult:
    uri = str(params.uri)
    content = EVERYTHING["contents"].get(uri)
    found = re.fullmatch(r"test://template/([^/]+)/data", uri)
    if found:
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        content = {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}
    if content is None:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult.model_validate({"contents": [content]})


def answer(kind: Any, document: dict[str, Any]) -> Any:
    """A handler that gives always the same."""

    async def handler(_ctx: Any, _params: Any) -> Any:
        return kind.model_validate(document)

    return handler


class Events(EventStore):
    """Events that a client may ask for again, in the order in which they were sent."""

    def __init__(self) -> None:
        self.all: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.all.append((stream_id, message))
        return str(len(self.all))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        last = int(last_event_id)
        stream, _ = self.all[last - 1]
        for number, (of, message) in enumerate(self.all[last:], last + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def new_server() -> Server[Any]:
    server: Server[Any] = Server(
        "everything-python",
        version="1",
        get_tool_input_schema=lambda name: TOOLS.get(name, {}).get("inputSchema"),
        on_list_tools=answer(types.ListToolsResult, {"tools": EVERYTHING["tools"]}),
        on_call_tool=call_tool,
        on_list_prompts=answer(types.ListPromptsResult, {"prompts": EVERYTHING["prompts"]}),
        on_get_prompt=get_prompt,
        on_list_resources=answer(types.ListResourcesResult, {"resources": EVERYTHING["resources"]}),
        on_list_resource_templates=answer(
            types.ListResourceTemplatesResult, {"resourceTemplates": EVERYTHING["templates"]}
        ),
        on_read_resource=read_resource,
        on_subscribe_resource=answer(types.EmptyResult, {}),
        on_unsubscribe_resource=answer(types.EmptyResult, {}),
        on_subscriptions_listen=ListenHandler(bus),
        on_completion=answer(
            types.CompleteResult,
            {"completion": {"values": ["paris"], "total": 1, "hasMore": False}},
        ),
        on_set_logging_level=answer(types.EmptyResult, {}),
    )
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name)
    )
    return server


def main() -> None:
    # Logging belongs to what the suites test, and is deprecated.
    warnings.simplefilter("ignore")
    app = new_server().streamable_http_app(event_store=Events(), retry_interval=100)
    listener = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    serving = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    asyncio.run(serving.serve(sockets=[listener]))


if __name__ == "__main__":
    main()
