"""Driver for the Python SDK 2.x that signs in by itself.

It prints a line {link}, reads the address that leads back from standard input, then lists all
tools, calls one, and prints a line {tools, result}.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from common import all_tools, run
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

CALLBACK = "http://127.0.0.1:9/callback"


class Memory:
    """The stored tokens and client of one run."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def show(link):
    print(json.dumps({"link": link}), flush=True)


async def returned():
    back = await asyncio.to_thread(sys.stdin.readline)
    query = parse_qs(urlsplit(back.strip()).query)
    first = {name: values[0] for name, values in query.items()}
    return AuthorizationCodeResult(
        code=first["code"], state=first.get("state"), iss=first.get("iss")
    )


async def drive(opts):
    metadata = OAuthClientMetadata(
        client_name="narthex-e2e-python",
        redirect_uris=[CALLBACK],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(opts.url, metadata, Memory(), show, returned)
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        async with Client(streamable_http_client(opts.url, http_client=http)) as client:
            tools = await all_tools(lambda cursor: page(client, cursor))
            result = await client.call_tool(opts.tool, opts.arguments)
            plain = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            return {"tools": tools, "result": plain}


async def page(client, cursor):
    result = await client.list_tools(cursor=cursor)
    return result.tools, result.next_cursor


run("python-v2", drive)
