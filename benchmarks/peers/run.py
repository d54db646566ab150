"""sire-rag beside what a user would pick instead: one table, one run.

    python benchmarks/peers/install.py
    python benchmarks/peers/run.py [--data DIR] [--passages 500] [--questions 120] [--only NAME...] [--out FILE]

Every peer gets the same passages of MuSiQue, the same questions (at odd positions: nothing was trained on them), the
same embedder (ours, fitted before), an instant scripted model over real HTTP, one thread, and a process of its own. CPU
seconds are those of the peer's process without the embedder's; the model is another process. A peer that fails is named
with its error. `--out` keeps rows beside the table (`.json`), so that the same command goes on where it was
interrupted: by default in `build/peers`, not over the published table, whose rows would count as measured already.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = Path(os.environ.get("SIRE_DATA", ROOT.parent / "shared" / "data"))
ENVIRONMENTS = ROOT / "build" / "peers"
RESULTS = ENVIRONMENTS / "peers.md"
PINNED = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
SECONDS = 1500
_ERROR = re.compile(r"[\w.]*(?:Error|Exception)\b.*")


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is measured.

    Attributes:
        name: As in the table.
        where: Module and class of the adapter.
        environment: Name of its requirements file; empty for this one.
        most: Passages above which it is not asked to go.
    """

    name: str
    where: str
    environment: str = ""
    most: int = 1_000_000


PEERS = (
    Peer("**sire-rag, `sire`**", "ours:Sire"),
    Peer("**sire-rag, `sire`, extraction by the model**", "ours:SireModel"),
    Peer("**sire-rag, `pagerank`, extraction by the model**", "ours:PageRankModel"),
    Peer("**sire-rag, `flat`**", "ours:Flat"),
    Peer("LangChain `BM25Retriever`", "frameworks:LangChainBM25", "frameworks"),
    Peer("LangChain `InMemoryVectorStore`", "frameworks:LangChainInMemory", "frameworks"),
    Peer("LangChain `FAISS`", "frameworks:LangChainFaiss", "frameworks"),
    Peer("langchain-graph-retriever", "frameworks:LangChainGraph", "frameworks"),
    Peer("LlamaIndex, default store", "frameworks:LlamaIndexDefault", "frameworks"),
    Peer("LlamaIndex `BM25Retriever`", "frameworks:LlamaIndexBM25", "frameworks"),
    Peer("LlamaIndex `PropertyGraphIndex`", "frameworks:LlamaIndexPropertyGraph", "frameworks", 500),
    Peer("LightRAG", "graphs:LightRag", "lightrag", 500),
    Peer("fast-graphrag", "graphs:FastGraphRag", "fast-graphrag", 500),
    Peer("nano-graphrag", "graphs:NanoGraphRag", "nano-graphrag", 500),
)


def prepare(data: Path, passages: int, questions: int, folder: Path) -> None:
    """Gold passages of some questions, filled up with others; and the embedder, fitted on them."""
    from sire_core.evaluate.datasets import load_dataset
    from sire_core.models.lexical_embedder import LexicalEmbedder

    found = load_dataset(data / "musique-more")
    asked = [question for question in found.part("odd").questions if question.supporting][:questions]
    gold = {passage for question in asked for passage in question.supporting}
    if len(gold) > passages - 10:
        raise SystemExit(f"{len(gold)} gold passages do not fit into {passages}: ask fewer --questions.")
    others = [document.id for document in found.documents if document.id not in gold]
    chosen = gold.union(others[: passages - len(gold)])
    given = [document for document in found.documents if document.id in chosen]
    # The last ten are added later, and are nobody's gold.
    last = [document for document in given if document.id not in gold][-10:]
    ordered = [document for document in given if document not in last] + last
    rows = [{"id": d.id, "title": d.title, "text": d.text} for d in ordered]
    (folder / "passages.json").write_text(json.dumps(rows))
    wanted = [{"question": q.question, "supporting": list(q.supporting)} for q in asked]
    (folder / "questions.json").write_text(json.dumps(wanted))
    np.savez(folder / "embedder.npz", **LexicalEmbedder().fit([f"{d.title}\n{d.text}" for d in ordered]).state())


def measure(peer: Peer, given: Path) -> dict[str, Any]:
    """One peer in a process of its own; `error` where it fails."""
    sys.path.insert(0, str(ROOT / "tests"))
    from sire_core.models.usage import estimate_tokens
    from support.chat_frames import content_text
    from support.scripted_server import ScriptedServer

    python = Path(sys.executable)
    if peer.environment:
        place = ENVIRONMENTS / peer.environment
        if not (place / "installed").exists():
            why = (place / "failed").read_text().strip() if (place / "failed").exists() else "run install.py first"
            return {"error": f"not installed: {why.splitlines()[0]}"}
        python = place / "bin" / "python"
    from model import answer

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place_name, ScriptedServer(answer) as server:
        command = [str(python), str(HERE / "measure.py"), peer.where, str(given), place_name + "/index"]
        errors = Path(place_name, "errors")
        process = subprocess.Popen(
            [*command, server.base_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors.open("w"),
            text=True,
            env=_environment(),
        )
        for phase, row in _phases(process):
            sent = [content_text(m["content"]) for entry in server.log for m in entry.call.body["messages"]]
            found[phase] = row | {"calls": len(server.log), "tokens": sum(map(estimate_tokens, sent))}
            server.log.clear()
        said = [line for line in errors.read_text().splitlines() if _ERROR.match(line)]
    if process.wait() or "searched" not in found:
        found["error"] = (said[-1] if said else f"ended with {process.returncode}")[:300]
    return found


def _environment() -> dict[str, str]:
    """One thread, our embedder importable, and the encodings of tiktoken that LlamaIndex brings (no download)."""
    cached = next(
        (ENVIRONMENTS / "frameworks").glob("lib/python*/site-packages/llama_index/core/_static/tiktoken_cache"), ""
    )
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    quiet = {"TIKTOKEN_CACHE_DIR": str(cached), "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    return {
        **kept,
        **PINNED,
        **quiet,
        "PYTHONPATH": str(ROOT / "core"),
        "NO_PROXY": "127.0.0.1",
        "OPENAI_API_KEY": "none",
    }


def _phases(process: subprocess.Popen[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the process reports; it goes on when the caller has looked at the model's log."""
    import threading

    assert process.stdin is not None
    assert process.stdout is not None
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and "phase" in row:
                yield row.pop("phase"), row
                process.stdin.write("\n")
                process.stdin.flush()
    finally:
        timer.cancel()


def table(rows: dict[str, dict[str, Any]], passages: int) -> str:
    """The table, those that failed below it."""
    heads = (
        "index CPU s / 1,000",
        "calls",
        "prompt tokens",
        "query CPU ms p50",
        "p99",
        "peak MB",
        "disk KB",
        "adding 10, CPU s",
        "R@5",
    )
    lines = [f"| {passages:,} passages | {' | '.join(heads)} |", "|---" + "|--:" * len(heads) + "|"]
    failed = []
    built = passages - 10
    for name, row in rows.items():
        if "error" in row:
            failed.append(f"- {name}: {row['error']}")
        if "searched" not in row:
            continue
        index, added, asked = row["built"], row["added"], row["searched"]
        calls = index["calls"] / built
        cells = (
            f"{1000 * index['cpu'] / built:.2f}",
            f"{calls:.2f}" if calls else "0",
            f"{index['tokens'] / built:,.0f}",
            f"{asked['p50']:.1f}",
            f"{asked['p99']:.1f}",
            f"{index['peak_mb']:,.0f}",
            f"{index['disk'] / 1024 / built:.1f}" if index["disk"] else "in memory",
            f"{added['cpu']:.2f}",
            f"{asked['recall']:.1f}",
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
        if asked["failures"]:
            failed.append(
                f"- {name}: {len(asked['failures'])} of {asked['questions']} questions failed, "
                f"first: {asked['failures'][0][:200]}"
            )
    return "\n".join([*lines, *(["", "Failed:", "", *failed] if failed else [])]) + "\n"


def main() -> None:
    """Measure who is not measured yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--passages", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--only", nargs="+", default=[], help="words of the names of those that are measured again")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    kept = given.out.with_suffix(".json")
    known = json.loads(kept.read_text()) if kept.exists() else {}
    for passages in given.passages:
        rows = known.setdefault(str(passages), {})
        with tempfile.TemporaryDirectory() as name:
            prepare(given.data, passages, given.questions, Path(name))
            for peer in PEERS:
                wanted = any(word in peer.name for word in given.only) if given.only else peer.name not in rows
                if wanted and passages <= peer.most:
                    print(f"{passages:,} passages: {peer.name}", file=sys.stderr, flush=True)
                    rows[peer.name] = measure(peer, Path(name))
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    kept.write_text(json.dumps(known, indent=1) + "\n")
    text = (HERE / "notes.md").read_text()
    for passages, rows in known.items():
        ordered = {peer.name: rows[peer.name] for peer in PEERS if peer.name in rows}
        text += "\n" + table(ordered, int(passages))
    given.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
