"""Questions to begin with."""

import pytest

from sire_core import Document
from sire_core.data import demo_documents
from sire_core.evaluate.made_questions import example_questions
from support.indexes import indexed


def asked(*documents, **options):
    index = indexed(documents, recipe="sire", **options)
    return example_questions(index.snapshot(), 9)


def page(title, *headings, text="It burns all night. Fill the oil lamps at noon. "):
    return Document(title, "".join(f"## {heading}\n\n{text * 30}\n\n" for heading in headings), title)


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("How do I create a self-signed certificate?", "How do I create a self-signed certificate?"),
        ("How to get a Git repository", "How do I get a Git repository?"),
        ("Sending patches by mail", "How do I send patches by mail?"),
        ("A.16 Creating a hook list", "How do I create a hook list?"),
        ("4.2 Creating a hook function", "How do I create a hook function?"),
        ("RESOLVING CONFLICTS OF BRANCHES", ""),
        ("What can I change?", ""),
        ("Why does it stop so early?", ""),
        ("Getting started with this server", ""),
        ("Putting the lamps together, and lighting them", ""),
        ("Wrapping Up", ""),
        ("Evening Standard Readers", ""),
        ("Creating Configuration of a lamp", ""),
        ("Filling Oil Lamps", "How do I fill oil lamps?"),
        ("Filling the Oil Lamps of Linux", "How do I fill the oil lamps of Linux?"),
        ("Creating a Copy For The Old Printer", "How do I create a copy for the old printer?"),
        ("Filling lamps", ""),
        ("Adding oil to the lamp", ""),
    ],
)
def test_headings_become_questions_where_they_are_clear_without_their_document(heading, question):
    assert asked(page("Lamp", heading, heading.swapcase())) == [question] * bool(question)


def test_the_first_line_of_a_manual_page_becomes_a_question():
    lines = (
        "git-am - Apply a series of patches from a mailbox",
        "git-am - Helper of other programs",
        "OK - Started the application at its path",
    )
    pages = [page(f"git-am({number})", "NAME", text=f"{line}\n\n") for number, line in enumerate(lines)]
    assert asked(*pages) == ["How do I apply a series of patches from a mailbox?"]
    top = page("lamptop - displays real-time information about the lamps of a house", "Options")
    assert asked(top) == ["How do I display real-time information about the lamps of a house?"]
    tool = page("htcacheclean - Clean up the disk cache", "Options")
    assert asked(tool) == ["How do I clean up the disk cache?"]


def test_kinds_of_questions_take_turns_and_no_document_asks_two_of_a_kind():
    faq = page("Questions", "How do I trim the wick of a lamp?", "How do I fill the lamp with oil?")
    guide = page("Guide", "Polishing the brass of the lamp")
    found = asked(faq, guide, *demo_documents())
    assert len(found) == len(set(found)) <= 9
    assert len([question for question in found if question.startswith("How are ")]) == 4
    assert len([question for question in found if question.startswith("How do I ")]) == 1
    assert any(question.startswith("What do we know about ") for question in found)


def test_a_heading_that_points_to_its_page_is_no_question():
    vague = page("Lamp", "What does the lamp do for the movement?", "How does the keeper trim oil lamps?")
    assert asked(vague) == ["How does the keeper trim oil lamps?"]


def test_names_of_headings_and_references_are_not_asked_about():
    pages = [page(f"Note {n}", "After Xen", text=f"Paul Gear ({n}). Night. New York: Karn Press. ") for n in range(5)]
    assert asked(*pages) == []
    said = [page(f"Year {n}", text="") for n in range(5)]
    said = [Document(d.title, f"Paul Gear wrote letter {d.title}.", d.title) for d in said]
    assert "What do we know about Paul Gear?" in asked(*pages, *said)
    texts = (f"Dear Fanny was glad of letter {n}. Table Of Contents has {n} lines." for n in range(5))
    assert asked(*(Document(f"p{n}", text) for n, text in enumerate(texts))) == []


def test_questions_are_of_what_may_be_seen():
    open_, closed = page("Open", "How do I trim the wick?"), page("Closed", "How do I open the safe of the bank?")
    documents = [Document(d.id, d.text, d.title, {"tenant": d.title}) for d in (open_, closed)]
    index = indexed(documents, recipe="sire")
    assert example_questions(index.snapshot(filter="tenant=Open")) == ["How do I trim the wick?"]
