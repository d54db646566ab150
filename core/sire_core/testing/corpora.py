"""Corpora that every recipe has to cope with."""

from __future__ import annotations

from dataclasses import replace

from sire_core.data import demo_documents
from sire_core.types import Document

__all__ = ["sample_corpus", "two_tenants"]


def sample_corpus() -> list[Document]:
    """The demo corpus, with a copied passage and one without text."""
    documents = list(demo_documents())
    copy = replace(documents[3], id="copy")
    return [*documents, copy, Document("nothing", "")]


def two_tenants() -> list[Document]:
    """Two tenants with names, sentences and a passage in common; each has words that the other must never see."""
    documents = []
    for tenant in ("red", "blue"):
        name = f"{tenant.title()}marker"
        texts = {
            f"{name} 0": f"Lord Ashby met the {tenant}canary Council in Port Amber. Mira Vale joined Lord Ashby.",
            f"{name} 1": f"Mira Vale owns {name} Mill. Port Amber is a harbor.",
            "Port Amber": "Port Amber is a harbor. Lord Ashby lives in Port Amber.",
            f"{name} 3": f"The {name} Company sells rope. Lord Ashby bought rope of Mira Vale.",
        }
        documents += [Document(f"{name} {title}", text, title, {"tenant": tenant}) for title, text in texts.items()]
    # Titles of one tenant that are longer forms of names in the other's text.
    for title, text in (("Earl Corin, Duke of Redcanary", "..."), ("Lord Ashby (Redcanary)", "It opened late.")):
        documents.append(Document(title, text, title, {"tenant": "red"}))
    for text in ("Earl Corin sailed to Port Amber.", "Earl Corin wrote a long letter to Mira Vale."):
        documents.append(Document(text, text, "Bluemarker 9", {"tenant": "blue"}))
    return documents
