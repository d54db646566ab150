"""The paper's scorer: a text encoder with random weights, small enough to train in a test."""

import asyncio
import json

import numpy as np
import pytest

from sire_core.errors import ConfigurationError, StorageError
from support.command import run

pytestmark = pytest.mark.slow  # transformers alone take seconds to import
torch = pytest.importorskip("torch", reason="the torch extra is missing")
transformers = pytest.importorskip("transformers", reason="the local extra is missing")

WORDS = "[PAD] [UNK] [CLS] [SEP] painter town born mill river on in is a the was lies where which . ?".split()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A folder of transformers: one layer of sixteen numbers, a vocabulary of words and letters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("encoder")
    letters = [chr(code) for code in range(97, 123)]
    vocabulary = {word: i for i, word in enumerate([*WORDS, *letters, *(f"##{letter}" for letter in letters)])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=256,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(painters, encoder):
    from sire_core.papers.iier.training import train_scorer
    from sire_core.papers.iier.training_data import EncoderConfig, TrainingConfig

    view, known = painters
    config = TrainingConfig(
        epochs=1, batch=8, max_length=2, labels="one_path", max_hops=None, encoder=EncoderConfig(str(encoder))
    )
    return asyncio.run(train_scorer(view, known, config))


def test_a_checkpoint_of_an_encoder_is_what_the_recipe_walks_with(painters, trained, tmp_path):
    from sire_core.papers.iier.chain_graph import ChainGraph
    from sire_core.papers.iier.neural import write_checkpoint
    from sire_core.papers.iier.rank import frontier
    from sire_core.papers.iier.recipe import iier

    view, known = painters
    file = tmp_path / "encoder.safetensors"
    card = write_checkpoint(file, trained.weights, trained.card)
    assert (card["kind"], card["config"]["max_hops"], card["config"]["labels"]) == ("encoder", None, "one_path")
    recipe = iier(n_sim=3, scorer="neural", checkpoint=str(file))
    scorer = recipe.ranker.scorer
    assert scorer.fingerprint == f"encoder/1:{card['digest']}"
    state, _ = frontier(ChainGraph.of(view), known[0].question, np.arange(6, dtype=np.int64)[:, None])
    scores = asyncio.run(scorer.score(state, ChainGraph.of(view), view))
    assert scores.shape == state.candidates.shape
    assert np.ptp(scores) > 0
    assert np.allclose(asyncio.run(trained.scorer.score(state, ChainGraph.of(view), view)), scores, atol=1e-5)
    ranking = asyncio.run(recipe.ranker.rank(known[0].question.query, 5, view))
    positions, _ = asyncio.run(ranking.top(3))
    assert len(positions) == 3


def test_training_moves_encoder_and_heads_and_lowers_the_loss(painters, encoder):
    from sire_core.papers.iier.scorer_networks import EncoderScorer, step_loss, train_encoder
    from sire_core.papers.iier.training import text_steps
    from sire_core.papers.iier.training_data import TrainingConfig

    view, known = painters
    steps, unreachable = text_steps(view, known, "one_path", None, 4, np.random.default_rng(0))
    assert unreachable == 0
    assert all(step.positive.sum() == 1 and 2 <= len(step.candidates) <= 4 for step in steps)
    owners = torch.from_numpy(np.repeat(np.arange(len(steps)), [len(step.candidates) for step in steps]))
    right = torch.from_numpy(np.concatenate([step.positive for step in steps]).astype(np.float32))
    edges = torch.from_numpy(np.concatenate([step.edges for step in steps]))
    texts = [text for step in steps for text in step.candidates]
    losses, seen, told = [], [], []
    model = EncoderScorer.from_folder(encoder)
    config = TrainingConfig(epochs=3, batch=8, rate=1e-2)
    for found in train_encoder(model, steps, config, 1e-3, lambda *at: told.append(at)):
        with torch.no_grad():
            logits = found([step.question for step in steps], [step.path for step in steps], texts, edges, owners)
        losses.append(float(step_loss(logits, right, owners, len(steps))))
        seen.append(found.arrays())
    assert losses[-1] < losses[0]
    assert len(told) == 3 * -(-len(steps) // 8)
    assert told == sorted(told)
    assert told[-1] == (3 * len(steps), 3 * len(steps))
    moved = {name.split(".")[0] for name, array in seen[-1].items() if not np.array_equal(array, seen[0][name])}
    assert moved == {"encoder", "edge", "score"}


def test_the_command_trains_an_encoder_and_says_when_the_heuristic_is_better(tmp_path, encoder):

    rows = [{"id": f"p{i}", "title": f"Ada {i}", "text": f"Ada {i} was born in Town {i % 3}."} for i in range(6)]
    rows += [{"id": f"t{i}", "title": f"Town {i}", "text": f"Town {i} lies on a river."} for i in range(3)]
    asked = [
        {"id": f"q{i}", "question": f"Where is the town of Ada {i}?", "supporting": [f"p{i}", f"t{i % 3}"]}
        for i in range(6)
    ]
    data = tmp_path / "data"
    data.mkdir()
    (data / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (data / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    words = ["train-chains", data, "--to", tmp_path / "x", "--scorer", "encoder", "--encoder", encoder, "--epochs", 1]
    result = run(*words, "--test", data, "--json")
    card = json.loads(result.stdout)
    assert "encoder" not in card  # its vocabulary is in the file, not on the screen
    rates = [card["metrics"]["validation_match_rate"], *card["metrics"]["match_rate"].values()]
    worse = sum(found["neural"] < found["heuristic"] for found in rates)
    assert result.stderr.count("stay with scorer=heuristic") == worse


def test_folders_and_files_that_are_no_encoder(tmp_path, trained):
    from sire_core.papers.iier.neural import load_chain_scorer, write_checkpoint
    from sire_core.papers.iier.scorer_networks import EncoderScorer

    with pytest.raises(ConfigurationError, match="holds no transformer"):
        EncoderScorer.from_folder(tmp_path)
    file = tmp_path / "encoder.safetensors"
    some = {name: array for name, array in trained.weights.items() if not name.startswith("edge")}
    write_checkpoint(file, some, trained.card)
    with pytest.raises(StorageError, match=r"encoder.safetensors does not hold all weights"):
        load_chain_scorer(file)
    write_checkpoint(file, trained.weights, {**trained.card, "encoder": {}})
    with pytest.raises(StorageError, match="does not hold the encoder"):
        load_chain_scorer(file)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_an_encoder_stored_in_half_precision_is_trained_in_whole_numbers(painters, encoder, tmp_path, dtype):
    from sire_core.papers.iier.training import train_scorer
    from sire_core.papers.iier.training_data import EncoderConfig, TrainingConfig

    transformers.AutoTokenizer.from_pretrained(encoder).save_pretrained(tmp_path)
    transformers.AutoModel.from_pretrained(encoder).to(getattr(torch, dtype)).save_pretrained(tmp_path)
    view, known = painters
    config = TrainingConfig(epochs=1, batch=8, max_length=2, encoder=EncoderConfig(str(tmp_path)))
    found = asyncio.run(train_scorer(view, known, config))
    assert all(np.isfinite(array).all() for array in found.weights.values())


def test_weights_that_are_no_numbers_are_refused(trained):
    from sire_core.papers.iier.neural import EncoderChainScorer

    broken = {name: np.full_like(array, np.nan) for name, array in trained.weights.items()}
    with pytest.raises(StorageError, match="not numbers"):
        EncoderChainScorer.of(broken, trained.card)


@pytest.mark.parametrize("kind", ["Roberta", "MPNet"])
def test_texts_are_cut_to_the_positions_that_an_encoder_has(encoder, tmp_path, kind):
    from sire_core.papers.iier.scorer_networks import EncoderScorer

    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer,
        model_input_names=["input_ids", "attention_mask"],
        **tokenizer.special_tokens_map,
    )
    made.save_pretrained(tmp_path)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path)
    model = EncoderScorer.from_folder(tmp_path).eval()
    assert np.isfinite(model.vectors(["the painter was born in a town . " * 100])).all()


def test_a_foreign_card_has_no_kernels_loaded(trained, monkeypatch):
    from sire_core.papers.iier.neural import EncoderChainScorer

    about = trained.card["encoder"]
    config = {**about["config"], "attn_implementation": "evil/repo", "_attn_implementation": "evil/repo"}
    card = {**trained.card, "encoder": {**about, "config": config}}
    scorer = EncoderChainScorer.of(trained.weights, card)
    assert scorer.model.encoder.config._attn_implementation == "eager"
    with pytest.raises(StorageError, match="does not hold the encoder"):
        EncoderChainScorer.of(trained.weights, {**card, "encoder": {**about, "tokenizer": "{}"}})


def test_threads_read_each_their_own_end_of_a_text(encoder):
    from concurrent.futures import ThreadPoolExecutor

    from sire_core.papers.iier.scorer_networks import EncoderScorer

    model = EncoderScorer.from_folder(encoder, max_tokens=8).eval()
    text = "painter born in a town . " * 20 + "the mill lies on the river . " * 20
    wanted = {end: model.vectors([text], keep_end=end) for end in (False, True)}
    ends = [number % 2 == 0 for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda end: model.vectors([text], keep_end=end), ends))
    assert all(np.array_equal(vectors, wanted[end]) for vectors, end in zip(found, ends, strict=True))
