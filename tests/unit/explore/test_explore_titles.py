"""Titles without the name of their site."""

from sire_core import Document, Index
from sire_core.explore.titles import shared_affixes, without_affixes

SITE = " \u2014 Borg - Archiver 1.2 documentation"


def test_what_half_of_the_titles_share_is_found_longest_first():
    titles = [f"{name}{SITE}" for name in ("prune", "create", "list", "delete")]
    assert shared_affixes([*titles, "Minutes", "Plan - draft"]) == (SITE, " - Archiver 1.2 documentation")
    assert shared_affixes([*titles, *map(str, range(5))]) == ()
    assert shared_affixes(titles[:3]) == ()
    assert shared_affixes([f"Wiki | {name}" for name in "abcd"]) == ("Wiki | ",)


def test_titles_lose_it_with_and_without_headings_and_never_all():
    assert without_affixes(f"prune{SITE}", [SITE]) == "prune"
    assert without_affixes(f"prune{SITE} > Notes > More", [SITE]) == "prune > Notes > More"
    assert without_affixes("Wiki | a", ["Wiki | "]) == "a"
    assert without_affixes(SITE, [SITE]) == SITE
    assert without_affixes("", [SITE]) == ""


def test_hits_and_pictures_have_short_titles_where_a_folder_is_a_site():
    names = ("prune", "create", "list", "delete")
    web = [Document(f"web/{name}.html", f"The command {name} of borg.", f"{name}{SITE}") for name in names]
    index = Index(recipe="flat")
    index.build([*web, *(Document(f"notes/{n}", f"Note {n}.", f"Note {n}") for n in range(9))])
    result = index.show("command prune", k=1)
    assert result.hits[0].title == "prune"
    assert result.picture.nodes[1].label == "prune"
    assert index.search("command prune", k=1)[0].unit.title == f"prune{SITE}"
