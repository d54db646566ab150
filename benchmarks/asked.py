"""Makes a set of questions that people asked in their own words, from a dump of a Stack Exchange site in a repository.

    git clone --bare https://github.com/ai-powered-search/devops DIR    # or any copy of its git directory or work tree
    python benchmarks/asked.py DIR OUT                                 # corpus.jsonl, questions.jsonl

Source: DevOps Stack Exchange (https://devops.stackexchange.com), all posts from February 2017 to September 2020, as
`posts.csv` in `devops.tgz` of github.com/ai-powered-search/devops (commit 551c0926). Licence of the posts: CC BY-SA 4.0
(those before 2 May 2018: CC BY-SA 3.0), by https://stackoverflow.com/help/licensing; the repository states none of its
own. An id in the corpus is the number of the post, so its author and text are at
https://devops.stackexchange.com/a/NUMBER. Several directories, and dumps as `Posts.xml`, are read as well: the ids then
begin with the name of the directory. The second set, `asked2`, is made from three, under the same licences: `beer`
(github.com/kevswanberg/beer_tentrr), `coffee` (Yoav-Shafir/Elasticsearch-Coffee-Search-Engine-JS) and `matheducators`
(jrfoster/spark-intro).

A question is as the dump has it (editors of the site may have mended its words), with the answer its author accepted
as gold. Left out are questions over 600 characters with their text, closed ones, those that their author answered, and
those whose accepted answer has under 100 characters or a score below zero. The corpus is all answers to all questions,
without titles and without the questions; of an asked question only the accepted answer is in it, since the others may
be as good, and what an answer quotes of its question is left out, since it would be found by that. Answers are in the
order of a hash, so that neither place nor number tells anything. `questions.jsonl` asks by the title alone (as typed
into a search box), `whole_questions.jsonl` the same by title and text (as told to a person).
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import html
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

LONGEST_QUESTION = 600
SHORTEST_GOLD = 100
BLOCKS = {"p", "li", "ul", "ol", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "div", "table", "tr"}


class Plain(HTMLParser):
    """The text of a post: blocks as (text, quoted)."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[tuple[str, bool]] = []
        self.text = ""
        self.quotes = 0
        self.code = False
        self.item = False

    def end_block(self) -> None:
        """Ends a block."""
        text = self.text.strip("\n") if self.code else " ".join(self.text.split())
        if text.strip():
            self.blocks.append((f"- {text}" if self.item else text, self.quotes > 0))
            self.item = False
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Begins a block, a quotation, code or an item."""
        if tag in BLOCKS:
            self.end_block()
        if tag == "br":
            self.text += "\n"
        self.quotes += tag == "blockquote"
        self.code = self.code or tag == "pre"
        self.item = self.item or tag == "li"

    def handle_endtag(self, tag: str) -> None:
        """Ends what `handle_starttag` began."""
        if tag in BLOCKS:
            self.end_block()
        self.quotes -= tag == "blockquote"
        self.code = self.code and tag != "pre"

    def handle_data(self, data: str) -> None:
        """Keeps text."""
        self.text += data


def blocks(body: str) -> list[tuple[str, bool]]:
    """The blocks of a post's HTML."""
    parser = Plain()
    parser.feed(body)
    parser.close()
    parser.end_block()
    return parser.blocks


def words(text: str) -> str:
    """A text's words, for comparing."""
    return " ".join(re.findall(r"\w+", text.lower()))


def files(directory: Path) -> Iterator[tuple[str, bytes]]:
    """The dumps in a git directory (its newest commit) or a work tree."""
    names = ("posts.csv", "Posts.xml", ".tgz")
    git = ["git", f"--git-dir={directory}"]
    if (directory / "HEAD").exists():
        listed = subprocess.run(
            [*git, "ls-tree", "-r", "--name-only", "HEAD"], check=True, capture_output=True, text=True
        )
        for name in listed.stdout.splitlines():
            if name.endswith(names):
                yield name, subprocess.run([*git, "show", f"HEAD:{name}"], check=True, capture_output=True).stdout
    else:
        for path in sorted(directory.rglob("*")):
            if path.name.endswith(names) and path.is_file():
                yield path.name, path.read_bytes()


def posts(name: str, content: bytes) -> Iterator[dict[str, str]]:
    """The posts of a dump, with the field names of `posts.csv`."""
    if name.endswith(".tgz"):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                file = archive.extractfile(member) if not Path(member.name).name.startswith("._") else None
                if file:
                    yield from posts(member.name, file.read())
    elif name.endswith("Posts.xml"):
        for element in ET.fromstring(content):
            names = {key: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower() for key in element.attrib}
            yield {names[key]: value for key, value in element.attrib.items()}
    elif name.endswith("posts.csv"):
        csv.field_size_limit(sys.maxsize)
        for row in csv.DictReader(io.StringIO(content.decode("utf-8"), newline="")):
            yield row | {key: html.unescape(row[key] or "") for key in ("body", "title")}


def answer_text(answer: dict[str, str], question: dict[str, str] | None) -> str:
    """An answer without what it quotes of its question."""
    asked = words(" ".join(text for text, _ in blocks(question["body"])) + " " + question["title"]) if question else ""
    kept = [text for text, quoted in blocks(answer["body"]) if not (quoted and words(text) in asked)]
    return "\n\n".join(kept)


def question_texts(question: dict[str, str]) -> tuple[str, str]:
    """A question as asked: its title, and title and text."""
    title = " ".join(html.unescape(question["title"]).split())
    return title, " ".join([title, *(" ".join(text.split()) for text, _ in blocks(question["body"]))])


def is_fair(question: dict[str, str], gold: dict[str, str] | None) -> bool:
    """True if a question is open and its accepted answer is by somebody else."""
    return (
        gold is not None
        and not question.get("closed_date")
        and int(gold["score"]) >= 0
        and (not question.get("owner_user_id") or question["owner_user_id"] != gold.get("owner_user_id"))
    )


def make(directories: list[Path]) -> dict[str, list[dict[str, object]]]:
    """The rows of each file."""
    corpus: list[dict[str, object]] = []
    short: list[dict[str, object]] = []
    long: list[dict[str, object]] = []
    seen: set[str] = set()
    for directory in directories:
        site = f"{directory.name}-" if len(directories) > 1 else ""
        found = {row["id"]: row for name, content in files(directory) for row in posts(name, content) if row["id"]}
        asked = {key: row for key, row in found.items() if row["post_type_id"] == "1"}
        answers = {key: row for key, row in found.items() if row["post_type_id"] == "2"}
        texts = {key: answer_text(row, asked.get(row["parent_id"])) for key, row in answers.items()}
        golds: dict[str, str] = {}
        for key, row in asked.items():
            gold = row.get("accepted_answer_id") or ""
            title, whole = question_texts(row)
            if not is_fair(row, answers.get(gold)) or len(whole) > LONGEST_QUESTION or len(texts[gold]) < SHORTEST_GOLD:
                continue
            if not words(title) or words(title) in seen:
                continue
            seen.add(words(title))
            golds[key] = gold
            rest = {"answers": [], "supporting": [f"{site}{gold}"], "type": "single"}
            short.append({"id": f"{site}q{key}", "question": title, **rest})
            long.append({"id": f"{site}q{key}", "question": whole, **rest})
        for key, row in answers.items():
            if texts[key] and golds.get(row["parent_id"], key) == key:
                corpus.append({"id": f"{site}{key}", "title": "", "text": texts[key]})
    corpus.sort(key=lambda passage: hashlib.sha256(str(passage["id"]).encode()).hexdigest())
    return {"corpus": corpus, "questions": short, "whole_questions": long}


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("out", type=Path, metavar="OUT")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, rows in make(arguments.directories).items():
        with (arguments.out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        print(f"{len(rows)} rows in {name}.jsonl")


if __name__ == "__main__":
    main()
