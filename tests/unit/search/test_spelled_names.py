"""The names that a question spells out are those that a linker of all names finds, in its order."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from spelled_lists import spelled_names

from sire_core.extraction.titles import TitleLinker

WORDS = ("The", "Tide", "tide", "Long", "of", "&", "and", "Ann", "II", "Oﬃce", "Office", "Count", "1912", "?")
NAME = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
TITLE = st.one_of(
    NAME, NAME.map("{} (film)".format), NAME.map("{} (1912)".format), NAME.map("{}, Count of Ann".format), st.just(" ")
)
MENTION = st.tuples(st.lists(TITLE, max_size=2, unique=True), st.booleans())


@settings(max_examples=300, deadline=None)
@given(mentions=st.lists(MENTION, max_size=12), question=st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join))
def test_few_names_tell_what_all_names_tell(mentions, question):
    names = [tuple(found) for found, _ in mentions]
    titles = np.array([title for _, title in mentions], dtype=bool)
    named = {}
    for mention in sorted(range(len(names)), key=lambda number: not titles[number]):
        for name in names[mention]:
            named.setdefault(name, []).append(mention)
    expected = {name: named[name] for name in TitleLinker(list(named)).mentions(question)}
    found = spelled_names(names, titles).said(question)
    assert list(found.items()) == list(expected.items())
