"""`SireBackend`: documents of an index as files of a Deep Agent."""

from __future__ import annotations

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from langchain_sire import SireRetriever
from sire_core import Document

pytest.importorskip("deepagents")

PAGES = (
    Document("ops/backup.md", "# Backup\n\nA backup is made every night.\n\nRun `restore --from tape` to get it back."),
    Document("ops/network/dns.md", "# Names\n\nThe resolver listens on port 53."),
    Document("team.md", "# Team\n\nIda Brandt keeps the tapes.", metadata={"secret": "yes"}),
)


@pytest.fixture
def backend():
    from langchain_sire import SireBackend

    return SireBackend(SireRetriever.from_documents(PAGES, k=2))


def test_documents_are_files_in_folders(backend):
    assert {(entry["path"], entry["is_dir"]) for entry in backend.ls("/").entries} == {
        ("/ops", True),
        ("/team.md", False),
    }
    assert {entry["path"] for entry in backend.ls("/ops").entries} == {"/ops/backup.md", "/ops/network"}
    assert "There is no /nothing" in backend.ls("/nothing").error
    assert [match["path"] for match in backend.glob("*.md", "/ops").matches] == [
        "/ops/backup.md",
        "/ops/network/dns.md",
    ]
    assert [match["path"] for match in backend.glob("/*.md").matches] == ["/team.md"]
    assert "traversal" in backend.glob("../*").error


def test_a_file_is_read_by_lines(backend):
    whole = backend.read("/ops/backup.md")
    assert whole.file_data["content"] == PAGES[0].text
    assert (whole.start_line, whole.end_line, whole.total_lines, whole.next_offset) == (1, 5, 5, None)
    part = backend.read("/ops/backup.md", offset=2, limit=1)
    assert (part.file_data["content"], part.next_offset) == ("A backup is made every night.", 3)
    assert "5 lines" in backend.read("/ops/backup.md", offset=9).error
    assert "There is no file" in backend.read("/ops").error


def test_grep_finds_lines_and_else_searches(backend):
    [match] = backend.grep("restore --from").matches
    assert (match["path"], match["line"]) == ("/ops/backup.md", 5)
    found = backend.grep("Who keeps the tapes that backups are restored from?").matches
    assert {match["path"] for match in found} == {"/ops/backup.md", "/team.md"}
    assert backend.grep("Who keeps the tapes?", glob="ops/**").matches
    assert all(match["path"].startswith("/ops") for match in backend.grep("Who keeps the tapes?", path="/ops").matches)
    assert backend.grep("e", max_count=1).truncated


def test_nothing_can_be_changed(backend):
    assert "cannot be changed" in backend.write("/x.md", "text").error
    assert "cannot be changed" in backend.edit("/team.md", "Ida", "Eve").error
    assert backend.upload_files([("/x.md", b"text")])[0].error == "permission_denied"
    first, second = backend.download_files(["/team.md", "/x.md"])
    assert first.content == PAGES[2].text.encode()
    assert second.error == "file_not_found"


def test_what_allow_hides_is_no_file(tmp_path):
    from langchain_sire import SireBackend

    SireRetriever.from_documents(PAGES, path=tmp_path / "ix").index.close()
    backend = SireBackend(SireRetriever.load(tmp_path / "ix", allow="not secret=yes"))
    assert {entry["path"] for entry in backend.ls("/").entries} == {"/ops"}
    assert backend.read("/team.md").error
    assert not backend.grep("Ida").matches


def test_a_deep_agent_searches_and_reads(backend):
    from deepagents import create_deep_agent

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            return self

    calls = (
        AIMessage("", tool_calls=[{"name": "grep", "args": {"pattern": "Who keeps the tapes?"}, "id": "1"}]),
        AIMessage("", tool_calls=[{"name": "read_file", "args": {"file_path": "/team.md"}, "id": "2"}]),
        AIMessage("Ida Brandt (/team.md)"),
    )
    agent = create_deep_agent(model=Model(messages=iter(calls)), backend=backend)
    messages = agent.invoke({"messages": [("user", "Who keeps the tapes?")]})["messages"]
    grep, read = (message.text for message in messages if message.type == "tool")
    assert "/team.md" in grep
    assert "Ida Brandt keeps the tapes." in read
