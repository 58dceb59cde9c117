"""Driver for the Python SDK 2.x, which negotiates: legacy, auto, or pinned to the modern era."""

import httpx2
from common import all_tools, headers, run
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

MODERN = "2026-07-28"


async def drive(opts):
    async with httpx2.AsyncClient(headers=headers(opts), timeout=30) as http:
        mode = MODERN if opts.era == "modern" else opts.era
        async with Client(server(opts, http), mode=mode) as client:
            tools = await all_tools(lambda cursor: page(client, cursor))
            result = await client.call_tool(opts.tool, opts.arguments)
            protocol = client.protocol_version
            return {
                "era": "modern" if protocol == MODERN else "legacy",
                "protocol": protocol,
                "tools": tools,
                "result": result.model_dump(mode="json", by_alias=True, exclude_none=True),
            }


def server(opts, http):
    if opts.command:
        program, *args = opts.command
        return StdioServerParameters(command=program, args=args)
    return streamable_http_client(opts.url, http_client=http)


async def page(client, cursor):
    result = await client.list_tools(cursor=cursor)
    return result.tools, result.next_cursor


run("python-v2", drive)
