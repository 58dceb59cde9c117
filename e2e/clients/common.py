"""What the Python drivers share: the options and the one line of output.

Every driver connects, lists all tools (all pages), calls one tool and prints one JSON line
{client, era, protocol, transport, tools, result}. It exits with 1 and a message on stderr when any
step fails. A token is only ever read from a file: argv and the environment of a process can be
seen by others.
"""

import argparse
import asyncio
import json
import sys
import traceback
from pathlib import Path

PAGE_LIMIT = 100


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=["legacy", "auto", "modern"], default="legacy")
    parser.add_argument("--url", help="Streamable HTTP endpoint")
    parser.add_argument("--token-file", type=Path)
    parser.add_argument("--command", type=json.loads, help="JSON array: a stdio server's command")
    parser.add_argument("--tool", required=True)
    parser.add_argument("--arguments", type=json.loads, default={})
    opts = parser.parse_args()
    if bool(opts.url) == bool(opts.command):
        parser.error("give either --url or --command")
    opts.transport = "http" if opts.url else "stdio"
    return opts


def headers(opts):
    if opts.token_file is None:
        return {}
    return {"Authorization": f"Bearer {opts.token_file.read_text().strip()}"}


async def all_tools(list_page):
    """Follows the cursor to the end and returns the names of all tools."""
    names, cursor = [], None
    for _ in range(PAGE_LIMIT):
        tools, cursor = await list_page(cursor)
        names.extend(tool.name for tool in tools)
        if cursor is None:
            return names
    raise RuntimeError(f"tools/list still has pages after {PAGE_LIMIT}")


def run(client, drive):
    """Runs a driver: `drive` gets the options and returns the object to print."""
    opts = options()
    try:
        answer = asyncio.run(drive(opts))
    except Exception:
        print(f"{client}:", file=sys.stderr)
        traceback.print_exc()
        sys.exit(1)
    print(json.dumps({"client": client, "transport": opts.transport, **answer}))
