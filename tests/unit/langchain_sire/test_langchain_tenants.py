"""Two tenants in one index: nothing of the other shows, whichever way LangChain asks."""

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField

from langchain_sire import SireRetriever, create_sire_tool
from sire_core import recipes

RECIPES = sorted(recipes.REGISTRY)
SECRETS = {"a": "marzipan", "b": "quicksilver"}


def _documents():
    """Both tenants speak of the same people, so that every kind of derived unit would love to mix them."""
    said = "{name} runs the {secret} works in {place}. {name} has known Otto Brack since {place} was founded."
    people = [("Petra Quillon", "Varn Harbour"), ("Ilse Marrable", "Lindlemouth"), ("Maren Holt", "Hathersay")]
    return [
        Document(
            id=f"{tenant}-{number}",
            page_content=said.format(name=name, place=place, secret=SECRETS[tenant]),
            metadata={"tenant": tenant, "title": name},
        )
        for number, (name, place) in enumerate(people)
        for tenant in SECRETS
    ]


@pytest.fixture(scope="module", params=RECIPES)
def retriever(request):
    return SireRetriever.from_documents(_documents(), recipe=request.param, k=40)


def _check(documents, tenant):
    other = next(name for name in SECRETS if name != tenant)
    shown = " ".join(d.page_content + repr(d.metadata) for d in documents)
    assert documents
    assert SECRETS[tenant] in shown
    assert SECRETS[other] not in shown
    assert not [name for d in documents for name in d.metadata["sire"]["doc_ids"] if name.startswith(other)]


@pytest.mark.parametrize("tenant", SECRETS)
async def test_trap_no_word_of_another_tenant_in_any_answer(retriever, tenant):
    where = {"tenant": tenant}
    question = "Who runs the works that Otto Brack knows?"
    _check(retriever.invoke(question, filter=where), tenant)
    _check(await retriever.ainvoke(question, filter=where), tenant)
    mine = SireRetriever(index=retriever.index, filter=where, k=40)
    _check(mine.invoke(question), tenant)
    configured = retriever.configurable_fields(filter=ConfigurableField(id="filter"))
    _check(configured.invoke(question, {"configurable": {"filter": where}}), tenant)
    other = next(name for name in SECRETS if name != tenant)
    text = create_sire_tool(mine).invoke({"query": question, "filter": {"or": [{"tenant": other}, {"tenant": tenant}]}})
    assert SECRETS[tenant] in text
    assert SECRETS[other] not in text


def test_mixed_units_exist_so_that_the_test_can_fail():
    mixed = SireRetriever.from_documents(_documents(), recipe="sirerag", k=60).invoke("Otto Brack", returns="units")
    assert any({"a", "b"} <= {name[0] for name in d.metadata["sire"]["doc_ids"]} for d in mixed)
