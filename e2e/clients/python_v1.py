"""Driver for the Python SDK 1.x: a client of the legacy era."""

from contextlib import asynccontextmanager

import httpx
from common import all_tools, headers, run
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def drive(opts):
    if opts.era != "legacy":
        raise ValueError(f"the 1.x SDK has no {opts.era} era")
    async with streams(opts) as (read, write), ClientSession(read, write) as session:
        initialized = await session.initialize()
        tools = await all_tools(lambda cursor: page(session, cursor))
        result = await session.call_tool(opts.tool, opts.arguments)
        return {
            "era": "legacy",
            "protocol": initialized.protocolVersion,
            "tools": tools,
            "result": result.model_dump(mode="json", by_alias=True, exclude_none=True),
        }


async def page(session, cursor):
    result = await session.list_tools(cursor)
    return result.tools, result.nextCursor


@asynccontextmanager
async def streams(opts):
    if opts.command:
        program, *args = opts.command
        async with stdio_client(StdioServerParameters(command=program, args=args)) as pair:
            yield pair
        return
    async with (
        httpx.AsyncClient(headers=headers(opts), timeout=30) as http,
        streamable_http_client(opts.url, http_client=http) as (read, write, _session_id),
    ):
        yield read, write


run("python-v1", drive)
