"""Vector stores that follow an index: one that fails half way, one with the least interface; what they should hold."""

import numpy as np
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryResult

from llama_index_sire import VectorStoreMirror
from sire_core import Document, Index
from sire_core.recipes import indexrag
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import to_uuid

PEOPLE = ["Mira Vale", "Anna Berg", "Tom Hale", "Ida Moor"]


def document(i, salt="", tenant="a"):
    text = f"{PEOPLE[i % 4]} was a painter{salt}. {PEOPLE[i % 4]} married {PEOPLE[(i + 1) % 4]} in Port {i}."
    return Document(f"d{i}", text, f"No. {i}", {"tenant": tenant})


class Flaky(SimpleVectorStore):
    """Fails after some nodes, half way through a batch."""

    _left: int = PrivateAttr(default=10**9)

    def add(self, nodes, **kwargs):
        for node in nodes:
            self._tick()
            super().add([node])
        return [node.node_id for node in nodes]

    def delete_nodes(self, node_ids=None, filters=None, **kwargs):
        for name in node_ids:
            self._tick()
            super().delete_nodes([name])

    def _tick(self):
        self._left -= 1
        if self._left < 0:
            raise ConnectionError("the store is away")


class AppendOnly(BasePydanticVectorStore):
    """Has only what is abstract, keeps two rows when an id is added twice, and makes its table at the first `add`."""

    stores_text: bool = True
    _rows: list = PrivateAttr(default=None)

    @property
    def client(self):
        return None

    def add(self, nodes, **kwargs):
        self._rows = [*(self._rows or ()), *nodes]
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id, **kwargs):
        if self._rows is None:
            raise RuntimeError("there is no table")
        self._rows = [node for node in self._rows if node.ref_doc_id != ref_doc_id]

    def query(self, query, **kwargs):
        inner = SimpleVectorStore()
        inner.add(self._rows or [])
        found = inner.query(query)
        nodes = [TextNode(id_=name) for name in found.ids]
        return VectorStoreQueryResult(nodes=nodes, similarities=found.similarities, ids=None)


def make(mirror, path=None, **more):
    given_mirrors = [mirror] if isinstance(mirror, VectorStoreMirror) else [VectorStoreMirror(mirror)]
    return Index(path, recipe=indexrag(), embedder=HashEmbedder(), chunker=None, mirrors=given_mirrors, **more)


def expected(index):
    """What the store holds: vector, and metadata with the sources."""
    view = index.view()
    rows = {}
    for position in range(view.size):
        unit, _ = view.pool.unit(position)
        rows[to_uuid(unit.id)] = (
            np.asarray(view.matrix[position], dtype=np.float32).tobytes(),
            view.shared_metadata(position).get("tenant"),
            unit.kind.value,
        )
    return rows


def held(store):
    data = store.data
    assert set(data.embedding_dict) == set(data.metadata_dict) == set(data.text_id_to_ref_doc_id)
    return {
        name: (
            np.asarray(vector, dtype=np.float32).tobytes(),
            data.metadata_dict[name].get("tenant"),
            data.metadata_dict[name]["sire_kind"],
        )
        for name, vector in data.embedding_dict.items()
    }
