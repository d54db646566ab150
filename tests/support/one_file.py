"""One file is written and read."""

from sire_core.files.readers import read_documents


def read_file(path, content=None):
    """Return the only document of a file, which is written first if there is content for it."""
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (document,) = read_documents(path).documents
    return document
