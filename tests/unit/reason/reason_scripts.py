"""Scripts of the reasoning tests, and a model that plays them over HTTP."""

from __future__ import annotations

import json

from sire_core.models.openai.client import OpenAIChat
from support.scripted_server import ScriptedServer

QUESTION = "Where was the director of the film The Salt Lantern born?"


def answer(text="Varn Harbour", citations=(1,), sufficient=True):
    return json.dumps({"answer": text, "citations": list(citations), "sufficient": sufficient})


def search(query, reasoning="We go on."):
    return json.dumps({"reasoning": reasoning, "search": query})


class Chat:
    """A scripted server, and a client of it; `say` are the answers in the order of the calls."""

    def __init__(self, say, **server):
        self.say = say
        self.server = ScriptedServer(self._script, **server)
        self.model = None

    def _script(self, call):
        if callable(self.say):
            return self.say(call)
        return self.say[min(call.number, len(self.say)) - 1]

    @property
    def calls(self):
        return [entry.call for entry in self.server.log]

    async def __aenter__(self):
        self.server.start()
        self.model = OpenAIChat("scripted", base_url=self.server.base_url, api_key="none", max_retries=0)
        return self

    async def __aexit__(self, *_):
        await self.model.aclose()
        self.server.stop()
