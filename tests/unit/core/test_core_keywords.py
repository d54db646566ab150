"""Keywords that a method of an index does not have: the error says where they belong."""

import pytest

from sire_core import Document, Index
from sire_core.recipes import flat


@pytest.fixture
def index():
    index = Index(recipe="flat")
    index.build([Document("salt", "Salt is white."), Document("iron", "Iron is grey.")])
    return index


@pytest.mark.parametrize("method", ["search", "asearch", "search_many", "asearch_many", "explain", "aexplain", "show"])
async def test_a_setting_of_recipes_is_shown_where_it_belongs(index, method):
    async def call():
        result = getattr(index, method)("salt", ranker="hybrid")
        return await result if method.startswith("a") else result

    with pytest.raises(TypeError, match=rf"^Index\.{method}\(\) .*recipe=flat\(ranker='hybrid'\)"):
        await call()
    with pytest.raises(TypeError, match=r"^Index\(\) .*'rerank_model': it is a setting of recipes \(flat, msrag"):
        Index(rerank_model="m")
    advised = Index(recipe=flat(ranker="hybrid"))  # what the error says works
    advised.build(index.documents())
    assert advised.search("white salt", 1)[0].doc_ids == ("salt",)


def test_words_of_other_libraries_are_translated(index):
    for word, ours in {"top_k": "k", "limit": "k", "filters": "filter", "where": "filter"}.items():
        with pytest.raises(TypeError, match=f"no argument '{word}'; use '{ours}'"):
            index.search("salt", **{word: 1})
    with pytest.raises(TypeError, match=r"index\.using\('flat'\)"):
        index.search("salt", recipe="flat")
    with pytest.raises(TypeError, match="did you mean 'filter'"):
        index.search("salt", filte="x")
    with pytest.raises(TypeError, match=r"^Index\(\) has no argument 'llm'; use 'language_model'"):
        Index(llm=None)
