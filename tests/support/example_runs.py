"""Examples run without a key and without a network, and what a scripted model says to their question."""

import runpy
import socket
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SELF_ASK = (
    "Follow up: Who wrote the novel The Weather Clerk?",
    "Ilse Marrable",
    "Follow up: In which year did Ilse Marrable die?",
    "1931",
    "So the final answer is: 1931",
    '{"answer": "1931", "citations": [1], "sufficient": true}',
)


def ircot(citation):
    """Turns of IRCoT that cite this passage."""
    return (
        '{"reasoning": "The novel is by Ilse Marrable.", "search": "When did Ilse Marrable die?"}',
        '{"reasoning": "She died on 2 November 1931.", "search": "DONE"}',
        f'{{"answer": "1931", "citations": [{citation}], "sufficient": true}}',
    )


def runner(monkeypatch, capsys):
    """A function that runs an example and gives its names and what it printed; it may call this machine alone."""
    connect = socket.socket.connect

    def refuse(self, address):
        if not (isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1")):
            raise OSError(f"an example used the network: {address}")
        return connect(self, address)

    def run(name):
        names = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return names, capsys.readouterr().out

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return run
