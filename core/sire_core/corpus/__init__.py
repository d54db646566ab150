"""Reading files, checking documents, cutting them into chunks."""

from sire_core.corpus.benchmarks import Question, read_questions
from sire_core.corpus.chunker import SentenceChunker, chunk_document
from sire_core.corpus.readers import LoadedDocuments, read_documents
from sire_core.corpus.validation import check_documents

__all__ = [
    "LoadedDocuments",
    "Question",
    "SentenceChunker",
    "check_documents",
    "chunk_document",
    "read_documents",
    "read_questions",
]
