"""`SireBackend`: the documents of an index as read-only files of a Deep Agent; needs the package `deepagents`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

try:
    from deepagents.backends.protocol import (
        BackendProtocol,
        EditResult,
        FileDownloadResponse,
        FileInfo,
        FileUploadResponse,
        GlobResult,
        GrepMatch,
        GrepResult,
        LsResult,
        ReadResult,
        WriteResult,
    )
    from deepagents.backends.utils import InvalidGlobPatternError, compile_grep_include_glob
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "deepagents":
        raise
    raise ImportError("SireBackend needs Deep Agents: pip install deepagents (Python 3.11 or newer)") from error

from langchain_sire.retriever import SireRetriever
from sire_core.types import Document

READ_ONLY = "These files are documents of a search index and cannot be changed. Write to another path."
FOUND_LINE_CHARACTERS = 300


class SireBackend(BackendProtocol):
    """Documents of an index as files, for `create_deep_agent(backend=...)` or a route of `CompositeBackend`.

    A file's path is `/` and the document's id. `grep` finds lines with the pattern, as agents expect of it; where no
    line has it and it has several words, it searches, and returns where the best hits stand: a question finds what
    answers it, with the path to read on. The retriever's `k`, `filter` and `allow` apply; what they hide is no file.

    Args:
        retriever: A `SireRetriever`.
    """

    def __init__(self, retriever: SireRetriever) -> None:
        self._retriever = retriever

    def _documents(self, under: str | None = None) -> dict[str, Document]:
        """Documents by path, those in a folder or of that path."""
        folder = "/" + (under or "").strip("/")
        documents = {"/" + document.id.lstrip("/"): document for document in self._retriever.index.documents()}
        inside = folder.rstrip("/") + "/"
        return {path: each for path, each in documents.items() if path == folder or path.startswith(inside)}

    def _matching(self, glob: str | None, path: str | None) -> dict[str, Document]:
        """Documents of a folder whose path matches a pattern."""
        is_wanted = _matcher(glob, path)
        return {name: each for name, each in self._documents(path).items() if is_wanted(name)}

    def ls(self, path: str) -> LsResult:
        """List documents and folders of a folder."""
        folder = "/" + path.strip("/")
        inside = self._documents(path)
        if not inside and folder != "/":
            return LsResult(error=f"There is no {path}. `ls /` lists what there is.")
        entries: dict[str, FileInfo] = {}
        for name, document in inside.items():
            first, slash, _ = name.removeprefix(folder.rstrip("/") + "/").partition("/")
            if name == folder or not slash:
                entries[name] = _entry(name, document)
            else:
                child = f"{folder.rstrip('/')}/{first}"
                entries[child] = {"path": child, "is_dir": True}
        return LsResult(entries=list(entries.values()))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read lines of a document."""
        document = self._documents(file_path).get("/" + file_path.strip("/"))
        if document is None:
            return ReadResult(error=f"There is no file {file_path}. `grep` with a question finds files.")
        if limit <= 0:
            return ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
        lines = document.text.split("\n")
        start = max(0, offset)
        window = lines[start : start + limit]
        if not window:
            return ReadResult(error=f"{file_path} has {len(lines)} lines; line {start + 1} is behind its end.")
        end = start + len(window)
        return ReadResult(
            file_data={"content": "\n".join(window), "encoding": "utf-8"},
            total_lines=len(lines),
            start_line=start + 1,
            end_line=end,
            next_offset=end if end < len(lines) else None,
        )

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Find lines with a text; where no line has several words, the best hits of a search for them."""
        try:
            documents = self._matching(glob, path)
        except InvalidGlobPatternError as error:
            return GrepResult(error=str(error))
        matches: list[GrepMatch] = [
            {"path": name, "line": number, "text": line}
            for name, document in documents.items()
            for number, line in enumerate(document.text.split("\n"), 1)
            if pattern in line
        ]
        if not matches and len(pattern.split()) > 1:
            matches = self._searched(pattern, documents)
        bounded = matches if max_count is None else matches[:max_count]
        return GrepResult(matches=bounded, truncated=len(bounded) < len(matches))

    def _searched(self, question: str, documents: dict[str, Document]) -> list[GrepMatch]:
        """First lines of the best passages, where they stand in their documents."""
        matches: list[GrepMatch] = []
        for hit in self._retriever.invoke(question):
            first = next((line for line in hit.page_content.split("\n") if line.strip()), "")
            for doc_id in hit.metadata["sire"]["doc_ids"]:
                name = "/" + doc_id.lstrip("/")
                if name in documents:
                    start = max(0, documents[name].text.find(hit.page_content.strip()[:FOUND_LINE_CHARACTERS]))
                    line = documents[name].text.count("\n", 0, start) + 1
                    matches.append({"path": name, "line": line, "text": first[:FOUND_LINE_CHARACTERS]})
        return matches

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find documents by path."""
        try:
            documents = self._matching(pattern, path)
        except InvalidGlobPatternError as error:
            return GlobResult(error=str(error))
        return GlobResult(matches=[_entry(name, document) for name, document in documents.items()])

    def write(self, file_path: str, content: str) -> WriteResult:
        """Refuse: the files are read-only."""
        return WriteResult(error=READ_ONLY)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Refuse: the files are read-only."""
        return EditResult(error=READ_ONLY)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Refuse: the files are read-only."""
        return [FileUploadResponse(path=path, error="permission_denied") for path, _ in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return documents as UTF-8."""
        documents = self._documents()
        return [
            FileDownloadResponse(path=path, content=documents[name].text.encode())
            if (name := "/" + path.strip("/")) in documents
            else FileDownloadResponse(path=path, error="file_not_found")
            for path in paths
        ]


def _entry(name: str, document: Document) -> FileInfo:
    return {"path": name, "is_dir": False, "size": len(document.text.encode())}


def _matcher(glob: str | None, path: str | None) -> Callable[[str], bool]:
    """True for paths that a pattern matches, relative to a folder; for all without a pattern."""
    if glob is None:
        return lambda _: True
    matches, folder = compile_grep_include_glob(glob), "/" + (path or "").strip("/")
    return lambda name: matches(name.removeprefix(folder).lstrip("/") or PurePosixPath(name).name)
