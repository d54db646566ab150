"""Ten thousand searches of one tenant, in every recipe, core and adapters, with damaged files: no word of the other."""

import random

import pytest
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from langchain_sire import SireRetriever as LangChainRetriever
from llama_index_sire import SireRetriever as LlamaIndexRetriever
from sire_core import Document, Index
from sire_core.recipes import REGISTRY
from sire_core.testing.doubles import HashEmbedder

pytestmark = pytest.mark.slow

SEARCHES = 10_000
RECIPES = sorted(REGISTRY)
WORDS = {"a": ["Ambrolite", "Tessaline", "Quorvath"], "b": ["Zorbleflux", "Vintrosk", "Plumbarge"]}
NAMES = ["Bela Kovac", "Cili Veld", "Otto Brack", "Ilse Marrable", "Maren Holt"]
PLACES = ["Drava", "Ceuta", "Varn Harbour", "Lindlemouth"]
DAMAGED_EVERY = 40


def documents():
    """Both tenants speak of the same people and places, so that every derived unit would like to mix them."""
    return [
        Document(
            f"{tenant}{i}",
            f"{NAMES[i % 5]} was born in {PLACES[i % 4]}. {NAMES[i % 5]} founded the {WORDS[tenant][i % 3]} mill with "
            f"{NAMES[(i + 2) % 5]} in 19{i:02}. It was sold to {NAMES[(i + 3) % 5]} of {PLACES[(i + 1) % 4]}.",
            title=NAMES[i % 5],
            metadata={"tenant": tenant, "number": i},
        )
        for i in range(20)
        for tenant in WORDS
    ]


def question(rng, tenant):
    other = "b" if tenant == "a" else "a"
    return rng.choice(
        [
            f"Who founded the {rng.choice(WORDS[other])} mill?",
            f"Where was {rng.choice(NAMES)} born, who sold to {rng.choice(NAMES)}?",
            rng.choice(WORDS[other]),
            f"{rng.choice(PLACES)} {rng.choice(NAMES)} {rng.choice(WORDS[tenant])}",
        ]
    )


def leaked(shown, asked, tenant):
    other = "b" if tenant == "a" else "a"
    text = repr(shown).replace(asked, "").replace(repr(asked)[1:-1], "")
    return [word for word in WORDS[other] if word in text]


def ask(face, index, asked, tenant, rng):
    where, k = {"tenant": tenant}, rng.choice([1, 5, 40])
    if face == "core":
        hits = index.search(asked, k, filter=where, returns=rng.choice(["units", "passages"]))
        assert all(doc[0] == tenant for hit in hits for doc in hit.doc_ids)
        return [(hit.unit, hit.path) for hit in hits]
    if face == "langchain":
        return LangChainRetriever(index=index, filter=where, k=k).invoke(asked)
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant)])
    found = LlamaIndexRetriever(index=index, filters=filters, similarity_top_k=k).retrieve(asked)
    return [(node.node.get_content(), node.node.metadata, node.node.node_id) for node in found]


def damage(path, rng):
    files = sorted(file for file in path.glob("derived/**/*") if file.is_file())
    if not files:
        return
    file = rng.choice(files)
    whole = bytearray(file.read_bytes())
    place = rng.randrange(max(1, len(whole)))
    how = rng.choice(["flip", "zero", "cut", "swap"])
    if how == "flip" and whole:
        whole[place] ^= 1 << rng.randrange(8)
    elif how == "zero":
        whole[place:] = bytes(len(whole) - place)
    elif how == "cut":
        del whole[place:]
    else:
        whole[:] = rng.choice(files).read_bytes()
    new = file.with_name("new.partial")
    new.write_bytes(whole)
    new.replace(file)


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_search_shows_a_word_of_the_other_tenant(tmp_path, recipe):
    rng = random.Random(recipe)
    with Index(tmp_path / "index", recipe=recipe, embedder=HashEmbedder()) as index:
        index.build(documents())
        shown = 0
        for number in range(SEARCHES // len(RECIPES) + 1):
            if number % DAMAGED_EVERY == DAMAGED_EVERY - 1:
                damage(tmp_path / "index", rng)
            face, tenant = rng.choice(["core", "langchain", "llama index"]), rng.choice(["a", "b"])
            asked = question(rng, tenant)
            found = ask(face, index, asked, tenant, rng)
            assert leaked(found, asked, tenant) == [], (face, asked)
            shown += len(found)
        assert shown > SEARCHES // len(RECIPES)
