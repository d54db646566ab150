"""The networks of the trained scorers, and their training loops (IIER, section 3.2, equations 1-4). Imports torch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from sire_core.extend import ConfigurationError, StorageError

if TYPE_CHECKING:
    from sire_core.extend import FloatArray, IntArray
    from sire_core.papers.iier.training_data import Examples, TextStep, TrainingConfig


def step_loss(scores: Any, positive: Any, owners: Any, decisions: int, loss: str = "listwise") -> Any:
    """Mean loss from logits, labels (1.0 for correct) and decisions, `[c]` each; every decision has a correct one."""
    totals = torch.zeros(decisions, dtype=scores.dtype)
    if loss == "bce":
        each = torch.nn.functional.binary_cross_entropy_with_logits(scores, positive, reduction="none")
        counts = totals.index_add(0, owners, torch.ones_like(scores))
        return (totals.index_add(0, owners, each) / counts).mean()
    largest = torch.full((decisions,), -torch.inf, dtype=scores.dtype).scatter_reduce(
        0, owners, scores.detach(), "amax"
    )
    normalizer = largest + totals.index_add(0, owners, (scores - largest[owners]).exp()).log()
    shares = positive / totals.index_add(0, owners, positive)[owners]
    return (normalizer - totals.index_add(0, owners, shares * scores)).mean()


SHARPNESS = 15.0  # Logits per unit of score; scores have the scale of the heuristic


class LightScorer(nn.Module):
    """A linear model plus an edge MLP and a scoring MLP, over `pair_features` and `edge_features`.

    It starts as a heuristic: the linear part has its weights (`start`), the scoring MLP returns 0. Edges that do not
    occur in training keep the heuristic's score.
    """

    def __init__(self, pairs: int, edges: int, start: Sequence[float], hidden: int = 32, edge_hidden: int = 16) -> None:
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(edges, edge_hidden), nn.ReLU(), nn.Linear(edge_hidden, edge_hidden))
        self.score = nn.Sequential(nn.Linear(pairs + edge_hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.direct = nn.Linear(pairs + edges, 1, bias=False)
        with torch.no_grad():
            for parameter in self.score[2].parameters():
                parameter.zero_()
            self.direct.weight.copy_(torch.tensor([list(start)]))

    def forward(self, pair: torch.Tensor, edge: torch.Tensor) -> torch.Tensor:
        """Logits of candidates, `[c]`: `SHARPNESS` times their scores."""
        step = self.score(torch.cat((pair, self.edge(edge)), dim=1))
        logits: torch.Tensor = SHARPNESS * (step + self.direct(torch.cat((pair, edge), dim=1)))[:, 0]
        return logits

    def arrays(self) -> dict[str, FloatArray]:
        """Return copies of the weights by name."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}


def train_epochs(
    examples: Examples, start: Sequence[float], config: TrainingConfig
) -> Iterator[Mapping[str, FloatArray]]:
    """Train on examples; yield the weights before the first epoch and after each."""
    pair, edge, positive, owners = examples.pair, examples.edge, examples.positive, examples.owners
    with deterministic(config.seed):
        model = LightScorer(pair.shape[1], edge.shape[1], start, config.hidden)
    first_values = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.rate, weight_decay=0.0)
    rng = np.random.default_rng([config.seed, 1])
    bounds = np.searchsorted(owners, np.arange(int(owners[-1]) + 2))
    yield model.arrays()
    for _ in range(config.epochs):
        with deterministic(config.seed):
            order = rng.permutation(len(bounds) - 1)
            for first in range(0, len(order), config.batch):
                chosen = order[first : first + config.batch]
                part = np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in chosen])
                decisions = np.repeat(np.arange(len(chosen)), bounds[chosen + 1] - bounds[chosen])
                logits = model(torch.from_numpy(pair[part]), torch.from_numpy(edge[part]))
                right = torch.from_numpy(positive[part].astype(np.float32))
                value = step_loss(logits, right, torch.from_numpy(decisions), len(chosen), config.loss)
                for parameter, first_value in zip(model.parameters(), first_values, strict=True):
                    value = value + config.hold * ((parameter - first_value) ** 2).sum()
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
        yield model.arrays()


@contextmanager
def deterministic(seed: int, threads: int | None = 1) -> Iterator[None]:
    """Set torch's seed and number of threads (None: unchanged) for a block, and restore both afterwards."""
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if threads is not None:
            torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


_EDGE = 3  # Weights of an edge: structural, semantic, keyword (eq. 2)
_TEXTS_PER_BATCH = 64  # Texts of a batch in inference
_UNBOUNDED = 1_000_000
_LOADING = frozenset(("attn_implementation", "auto_map", "quantization_config", "use_kernels", "trust_remote_code"))
_TOKENIZING = threading.Lock()
_NEEDED = 'The encoder scorer needs transformers, which the extra "local" brings: pip install "sire-rag[torch,local]"'


class EncoderScorer(nn.Module):
    """The paper's scorer: f_n([E_query; E_path; E_neighbour; f_r(w_struc, w_sim, w_kw)]), trained as a whole.

    The encoder reads all three texts. A path longer than `max_tokens` keeps its last tokens, other texts their first.
    """

    def __init__(self, encoder: Any, tokenizer: Any, max_tokens: int = 512) -> None:
        super().__init__()
        self.encoder, self._tokenizer = encoder.float(), tokenizer  # half precision cannot be trained
        size = int(encoder.config.hidden_size)
        self._max_tokens = min(max_tokens, _longest(encoder), int(tokenizer.model_max_length))
        self.edge = nn.Sequential(nn.Linear(_EDGE, size), nn.ReLU(), nn.Linear(size, size))
        self.score = nn.Sequential(nn.Linear(4 * size, size), nn.ReLU(), nn.Linear(size, 1))

    @classmethod
    def from_folder(cls, folder: str | Path, max_tokens: int = 512, seed: int = 0) -> EncoderScorer:
        """Load a pretrained encoder from a folder or by name, and initialize MLPs."""
        library = _transformers()
        inner = Path(folder) / "0_Transformer"  # of older sentence-transformers
        source = str(inner if inner.is_dir() else folder)
        try:
            encoder, tokenizer = (
                library.AutoModel.from_pretrained(source),
                library.AutoTokenizer.from_pretrained(source),
            )
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{folder} holds no transformer with a tokenizer ({error}).") from error
        if getattr(tokenizer, "backend_tokenizer", None) is None:
            raise ConfigurationError(f"{folder} has no fast tokenizer (tokenizer.json), which a checkpoint keeps.")
        with deterministic(seed, threads=None):
            return cls(encoder, tokenizer, max_tokens)

    @classmethod
    def from_checkpoint(cls, weights: Mapping[str, FloatArray], about: Mapping[str, Any]) -> EncoderScorer:
        """Load a saved scorer."""
        library = _transformers()
        from tokenizers import Tokenizer

        try:
            config = library.AutoConfig.for_model(**_safe_config(about["config"]))
            tokenizer = library.PreTrainedTokenizerFast(
                tokenizer_object=Tokenizer.from_str(about["tokenizer"]), **about["special"]
            )
            with deterministic(0, threads=None):
                encoder = library.AutoModel.from_config(config, attn_implementation="eager")
                scorer = cls(encoder, tokenizer, int(about["max_tokens"]))
            tensors = {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}
            loaded = scorer.load_state_dict(tensors, strict=False)
        except Exception as error:  # tokenizers raises nothing narrower, and a card may say anything
            raise StorageError(f"does not hold the encoder that its card names ({error}). Train it again.") from error
        if loaded.unexpected_keys or set(loaded.missing_keys) & set(scorer.arrays()):
            raise StorageError(f"does not hold all weights of its encoder ({loaded}). Train it again.")
        return scorer.eval()

    def arrays(self) -> dict[str, FloatArray]:
        """Return copies of the weights by name, without integer buffers."""
        tensors = {name: tensor.detach() for name, tensor in self.state_dict().items() if tensor.is_floating_point()}
        return {name: tensor.to(torch.float32).numpy().copy() for name, tensor in tensors.items()}

    def about(self) -> dict[str, Any]:
        """Return what is needed in addition to the weights to load the scorer, as JSON."""
        config = {**self.encoder.config.to_dict(), "dtype": "float32"}
        special = {name: str(token) for name, token in self._tokenizer.special_tokens_map.items()}
        text = self._tokenizer.backend_tokenizer.to_str()
        return {"config": config, "tokenizer": text, "special": special, "max_tokens": self._max_tokens}

    def forward(
        self,
        questions: Sequence[str],
        paths: Sequence[str],
        candidates: Sequence[str],
        edges: torch.Tensor,
        owners: torch.Tensor,
    ) -> torch.Tensor:
        """Logits of candidates `[c]` with edges `[c, 3]`, for the questions and paths of their owners `[c]`."""
        around = self.embed(questions)[owners], self.embed(paths, keep_end=True)[owners]
        return self._score_joined(*around, self.embed(candidates), edges)

    def _score_joined(
        self, questions: torch.Tensor, paths: torch.Tensor, candidates: torch.Tensor, edges: torch.Tensor
    ) -> torch.Tensor:
        """Score the four vectors of every candidate, `[c]`."""
        shared = edges * edges.new_tensor([1.0, 1.0, 0.2])  # five keywords at most: w_kw / 5
        logits: torch.Tensor = self.score(torch.cat((questions, paths, candidates, self.edge(shared)), dim=1))[:, 0]
        return logits

    def embed(self, texts: Sequence[str], *, keep_end: bool = False) -> torch.Tensor:
        """Mean of the last layer over the tokens of each text, `[n, size]`."""
        with _TOKENIZING:  # threads share the tokenizer and its truncation side
            self._tokenizer.truncation_side = "left" if keep_end else "right"
            tokens = self._tokenizer(
                list(texts), padding=True, truncation=True, max_length=self._max_tokens, return_tensors="pt"
            )
        layer = self.encoder(**tokens).last_hidden_state
        mask = tokens["attention_mask"][:, :, None].to(layer.dtype)
        mean: torch.Tensor = (layer * mask).sum(dim=1) / mask.sum(dim=1)
        return mean

    def vectors(self, texts: Sequence[str], *, keep_end: bool = False) -> FloatArray:
        """`embed` without learning, in batches, float32 `[n, size]`."""
        with torch.inference_mode():
            parts = [
                self.embed(texts[at : at + _TEXTS_PER_BATCH], keep_end=keep_end).numpy()
                for at in range(0, len(texts), _TEXTS_PER_BATCH)
            ]
        return np.concatenate(parts)

    def scores(
        self, question: FloatArray, paths: FloatArray, candidates: FloatArray, edges: FloatArray, owners: IntArray
    ) -> FloatArray:
        """Scores, -1 to 1, of candidates `[c, size]` with edges `[c, 3]`, for the paths `[a, size]` of their owners."""
        with torch.inference_mode():
            questions = torch.from_numpy(question).expand(len(candidates), -1)
            logits = self._score_joined(
                questions, torch.from_numpy(paths[owners]), torch.from_numpy(candidates), torch.from_numpy(edges)
            )
            values: FloatArray = nn.functional.softsign(logits).numpy()
        return values


def train_encoder(
    model: EncoderScorer,
    steps: Sequence[TextStep],
    config: TrainingConfig,
    encoder_rate: float,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[EncoderScorer]:
    """Train a scorer in place; yield it before the first epoch and after each, in evaluation mode."""
    heads = [*model.edge.parameters(), *model.score.parameters()]
    optimizer = torch.optim.AdamW(
        [{"params": list(model.encoder.parameters()), "lr": encoder_rate}, {"params": heads, "lr": config.rate}]
    )
    rng = np.random.default_rng([config.seed, 1])
    yield model.eval()
    for epoch in range(config.epochs):
        order = rng.permutation(len(steps))
        model.train()
        with deterministic(config.seed + epoch, threads=None):
            for first in range(0, len(order), config.batch):
                chosen = [steps[number] for number in order[first : first + config.batch].tolist()]
                owners = torch.from_numpy(np.repeat(np.arange(len(chosen)), [len(step.candidates) for step in chosen]))
                logits = model(
                    [step.question for step in chosen],
                    [step.path for step in chosen],
                    [text for step in chosen for text in step.candidates],
                    torch.from_numpy(np.concatenate([step.edges for step in chosen])),
                    owners,
                )
                right = torch.from_numpy(np.concatenate([step.positive for step in chosen]).astype(np.float32))
                value = step_loss(logits, right, owners, len(chosen), config.loss)
                if not torch.isfinite(value):
                    raise ConfigurationError("The loss is not a number any more: train with smaller learning rates.")
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
                if progress:
                    progress(epoch * len(order) + min(first + config.batch, len(order)), config.epochs * len(order))
        yield model.eval()


def _longest(encoder: Any) -> int:
    """Maximum tokens of an encoder; positions of RoBERTa and MPNet begin after that of the padding."""
    table = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    if isinstance(table, nn.Embedding):
        return table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
    return int(getattr(encoder.config, "max_position_embeddings", None) or _UNBOUNDED)


def _safe_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Configuration of an encoder without entries that would load code or kernels."""
    return {
        key: _safe_config(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if not str(key).startswith("_") and key not in _LOADING
    }


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ConfigurationError(_NEEDED) from error
    return transformers
