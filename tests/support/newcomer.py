"""What a newcomer's day with either framework shares: a question over the demo corpus, MCP over stdio, the skill."""

import os
import re
import shlex
import sys
from contextlib import asynccontextmanager

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from support.command import run

QUESTION = "Where was the director of the film The Salt Lantern born?"
NEEDED = {"salt-lantern", "petra-quillon"}
ANSWER = "She was born in Varn Harbour, in the room above the smokehouse [1]."
STEPS = (
    '{"reasoning": "The Salt Lantern was directed by Petra Quillon.", "search": "Where was Petra Quillon born?"}',
    '{"reasoning": "She was born in Varn Harbour.", "search": "DONE"}',
    f'{{"answer": "{ANSWER}", "citations": [1], "sufficient": true}}',
)


@asynccontextmanager
async def mcp_client(folder):
    """The official client, connected to `sire mcp`."""
    words = ["-c", "from sire_core.cli import main; main()", "mcp", str(folder)]
    server = stdio_client(StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ)))
    async with Client(server) as client:
        yield client


def skill_commands(folder):
    """The commands that the skill of an index shows, as an agent fills them in."""
    commands = re.findall(r"^sire (.+)$", run("skill", folder).stdout, re.MULTILINE)
    words = {"QUESTION": QUESTION, "DOC_ID": "petra-quillon"}
    return [[words.get(word, word) for word in shlex.split(command)] for command in commands]
