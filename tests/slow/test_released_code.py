"""RAPTOR's clusters and the searches of HippoRAG 2 and LinearRAG beside the code that their authors released.

Two packages come from PyPI into a folder of their own. LinearRAG is in no registry: SIRE_LINEARRAG names a checkout of
github.com/DEEP-PolyU/LinearRAG. What their modules import and no search calls (torch, clients of models) is a stand-in.
"""

import asyncio
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import types
from unittest.mock import MagicMock

import numpy as np
import pytest

from sire_core.evaluate import load_dataset
from sire_core.extend import name_key, names_in, split_sentences
from sire_core.papers.trees.clustering import soft_clusters
from sire_core.text.words import whole_name
from support.stated_triples import DistinctVectors, opener, questions_about, stated_triples

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PACKAGES = ("hipporag==2.0.0a4", "llama-index-packs-raptor==0.4.2")
LIBRARIES = ("igraph==0.11.8", "texttable", "umap-learn", "pynndescent", "numba", "llvmlite", "tqdm")
UNUSED = (
    "boto3",
    "botocore",
    "filelock",
    "gritlm",
    "litellm",
    "pandas",
    "spacy",
    "tenacity",
    "torch",
    "transformers",
    "vllm",
)
SUBMODULES = {"botocore": (".exceptions",), "torch": (".cuda",)}


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The folder of the packages, importable."""
    folder = tmp_path_factory.mktemp("released")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    done = subprocess.run([*pip, *PACKAGES, *LIBRARIES], capture_output=True, text=True, check=False, timeout=1200)
    if done.returncode:
        pytest.skip(f"the packages cannot be installed: {done.stderr[-300:]}")
    before = dict(sys.modules)
    sys.path.append(str(folder))
    yield folder
    sys.path.remove(str(folder))
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]


def load(name):
    """Import a released module, with stand-ins for what is not installed; torch's must not stay, SciPy looks at it."""
    absent = [other for other in UNUSED if importlib.util.find_spec(other) is None]
    stand_ins = {f"{other}{part}": MagicMock() for other in absent for part in ("", *SUBMODULES.get(other, ()))}
    sys.modules.update(stand_ins)
    try:
        return importlib.import_module(name)
    finally:
        for other in stand_ins:
            del sys.modules[other]


class Vectors:
    """Our vectors in the interfaces of the released code."""

    def batch_encode(self, texts, **_):
        alone = isinstance(texts, str)
        vectors = asyncio.run(DistinctVectors(192).embed([texts] if alone else texts))
        return vectors[0] if alone else vectors

    def encode(self, texts, **_):
        return self.batch_encode(texts)


@pytest.fixture(params=["stated 0", "stated 1", "stated 2", "MuSiQue"])
def world(request):
    """Rows of `stated_triples` and questions; of MuSiQue 300 passages, with the triples that GPT-3.5 found in them."""
    kind, _, seed = request.param.partition(" ")
    if kind == "stated":
        return stated_triples(int(seed)), list(questions_about(int(seed)))
    folder = request.getfixturevalue("sire_data") / "musique"
    lines = map(json.loads, (folder / "extractions.jsonl").read_text(encoding="utf-8").splitlines())
    recorded, dataset, rows = {line["id"]: line for line in lines}, load_dataset(folder), []
    for document in dataset.documents[:300]:
        line, sentences = recorded[document.id], split_sentences(document.text)
        ends = (
            tuple(" ".join(re.findall("[a-z0-9]+", str(end).lower())) for end in triple) for triple in line["triples"]
        )
        triples = [triple for triple in dict.fromkeys(ends) if len(triple) == 3 and len(triple[0]) > 2 < len(triple[2])]
        rows.append((document.id, sentences, triples, line["entities"]))
    # LinearRAG counts a name wherever its letters stand in a text, and knows it by its spelling.
    texts = [(sentences, " ".join(sentences).lower()) for _, sentences, *_ in rows]
    spelled = {name_key(name): name for *_, names in rows for name in names}
    names = [
        name
        for name in spelled.values()
        if all(
            text.count(name.lower()) == sum(len(whole_name(name).findall(one)) for one in sentences)
            for sentences, text in texts
        )
    ]
    rows = [
        (i, sentences, triples, [name for name in names if any(name in sentence for sentence in sentences)])
        for i, sentences, triples, _ in rows
    ]
    found = {row[0] for row in rows}
    return rows, [question.question for question in dataset.questions if found & {*question.supporting}]


def differing(index, question, rows, scores):
    """Documents whose scores differ, each side scaled to a highest of 1."""
    ours = {hit.doc_ids[0]: hit.score for hit in index.search(question, len(rows))}
    highest, first = max(scores.values()), max(ours.values())
    return [name for name, score in scores.items() if abs(score / highest - ours[name] / first) > 2e-3]


def test_clusters_of_a_level_are_those_of_the_released_code(released):
    module_file = next(released.glob("llama_index/packs/raptor/clustering.py"))
    spec = importlib.util.spec_from_file_location("released_clustering", module_file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plain, cases, lost = module.umap.UMAP, 0, 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        size, centers = int(rng.integers(14, 140)), rng.standard_normal((6, 24))
        vectors = (centers[rng.integers(6, size=size)] + 0.4 * rng.standard_normal((size, 24))).astype(np.float32)
        seeds = np.random.default_rng(seed)
        module.umap = types.SimpleNamespace(
            UMAP=lambda seeds=seeds, **more: plain(random_state=int(seeds.integers(2**31)), n_jobs=1, **more)
        )
        labels = module.perform_clustering(vectors, dim=10, threshold=0.1)
        lost += sum(not len(of_text) for of_text in labels)
        names = {label for of_text in labels for label in of_text}
        expected = {tuple(i for i, of_text in enumerate(labels) if label in of_text) for label in names}
        found = soft_clusters(vectors, rng=np.random.default_rng(seed), method="paper")
        assert {tuple(cluster.tolist()) for cluster in found} == expected
        cases += 1
    assert (cases, lost) == (6, 0)


def test_hipporag2_ranks_as_the_released_code(released, world, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    module = load("hipporag.HippoRAG")
    rows, asked = world
    texts = {" ".join(sentences): (name, triples) for name, sentences, triples, _ in rows}

    def recorded(chunks):
        """Recorded names and triples by chunk, in the place of a model's."""
        found = {key: texts[row["content"]][1] for key, row in chunks.items()}
        of_names = {
            key: module.NerRawOutput(key, "", sorted({end for h, _, t in own for end in (h, t)}), {})
            for key, own in found.items()
        }
        return of_names, {key: module.TripleRawOutput(key, "", own, {}) for key, own in found.items()}

    def nearest(query_ids, key_ids, query_vecs, key_vecs, k, **_):
        """Neighbours by cosine: the released function needs torch."""
        cosines = np.asarray(query_vecs) @ np.asarray(key_vecs).T
        orders = np.argsort(-cosines, axis=1)[:, :k]
        return {
            name: ([key_ids[i] for i in order], row[order].tolist())
            for name, order, row in zip(query_ids, orders, cosines, strict=True)
        }

    monkeypatch.setattr(module, "_get_llm_class", MagicMock())
    monkeypatch.setattr(module, "_get_embedding_model_class", lambda **_: lambda **_: Vectors())
    monkeypatch.setattr(module, "DSPyFilter", lambda _: lambda query, facts, rows, len_after_rerank: (rows, facts, {}))
    monkeypatch.setattr(module, "retrieve_knn", nearest)
    config = module.BaseConfig(synonymy_edge_sim_threshold=0.4, save_openie=False)
    system = module.HippoRAG(config, save_dir=str(tmp_path / "released"), llm_model_name="none")
    system.openie.batch_openie = recorded
    monkeypatch.setattr(system, "load_existing_openie", lambda keys: ([], set(keys)))
    system.index(list(texts))
    # Which of two phrases with equal weights is the fifth is left to chance there: no phrase is cut off.
    search = system.graph_search_with_fact_entities
    system.graph_search_with_fact_entities = lambda link_top_k, **more: search(link_top_k=10 * link_top_k, **more)
    settings = {"recognition": "none", "synonyms": 0.4, "phrases": 50}
    with opener(rows, tmp_path / "recorded.jsonl")("hipporag2", preset="published", **settings) as index:
        for solution in system.retrieve(asked, num_to_retrieve=len(rows)):
            scores = {texts[text][0]: score for text, score in zip(solution.docs, solution.doc_scores, strict=True)}
            assert differing(index, solution.question, rows, scores) == []


def test_linearrag_ranks_as_the_released_code(released, world, tmp_path, monkeypatch):
    checkout = os.environ.get("SIRE_LINEARRAG") or pytest.skip("SIRE_LINEARRAG names no checkout of LinearRAG")
    monkeypatch.syspath_prepend(checkout)
    module = load("src.LinearRAG")
    rows, asked = world
    texts = {" ".join(sentences): (name, sentences, names) for name, sentences, _, names in rows}

    class Names:
        """Recorded names by passage and sentence, in the place of spaCy's."""

        def batch_ner(self, passages, _):
            of_passages = {key: texts[text][2] for key, text in passages.items()}
            stated = {}
            for _, sentences, names in texts.values():
                for sentence in sentences:
                    stated.setdefault(sentence, []).extend(name for name in names if name in sentence)
            return of_passages, {text: list(dict.fromkeys(names)) for text, names in stated.items() if names}

        def question_ner(self, question):
            return [name.lower() for name in names_in(question)]

    monkeypatch.setattr(module, "SpacyNER", lambda _: Names())
    config = load("src.config").LinearRAGConfig(
        "stated",
        Vectors(),
        working_dir=str(tmp_path / "released"),
        retrieval_top_k=len(rows),
        passage_ratio=0.05,
        iteration_threshold=0.4,
    )
    system = module.LinearRAG(config)
    system.index(list(texts))
    with opener(rows, tmp_path / "recorded.jsonl")("linearrag", preset="code") as index:
        for found in system.retrieve([{"question": question, "answer": ""} for question in asked]):
            pairs = zip(found["sorted_passage"], found["sorted_passage_scores"], strict=True)
            scores = {texts[text][0]: score for text, score in pairs}
            assert differing(index, found["question"], rows, scores) == []
