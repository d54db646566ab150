"""An index as tools for any agent that speaks MCP: `sire mcp DIR`, here with the official SDK's own client.

Agents start it themselves, with {"command": "sire", "args": ["mcp", "/path/to/my-index"]} in their configuration.
Add "--llm", "gpt-4o-mini" for the tool `ask`, and "--http", "8000" to serve over HTTP instead. Runs offline.
"""

import asyncio
import sys
import tempfile

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from sire_core import Index
from sire_core.data import demo_documents


async def main(folder: str) -> None:
    with Index(folder, recipe="sirerag") as index:
        await index.abuild(demo_documents())

    sire = [sys.executable, "-c", "from sire_core.cli import main; main()"]  # as the command `sire` on your path
    server = StdioServerParameters(command=sire[0], args=[*sire[1:], "mcp", folder])
    async with Client(stdio_client(server)) as client:
        print(client.instructions)
        for tool in (await client.list_tools()).tools:
            print(f"{tool.name}({', '.join(tool.input_schema['properties'])})")

        question = "Where was the director of the film The Salt Lantern born?"
        found = await client.call_tool("search", {"query": question, "k": 3, "filter": {"kind": "person"}})
        print("\nWhat the agent reads:\n" + found.content[0].text)

        reasons = await client.call_tool("explain", {"query": question, "k": 1})
        print("\n" + reasons.content[0].text)

        refused = await client.call_tool("search", {"query": question, "filter": "year"})
        print("\nA mistake:", refused.content[0].text)


with tempfile.TemporaryDirectory() as place:
    asyncio.run(main(f"{place}/index"))
