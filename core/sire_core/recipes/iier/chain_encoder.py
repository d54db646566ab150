"""The full scorer of the paper: a shared text encoder, an edge MLP and a scoring MLP (IIER section 3.2, eq. 1-4)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from sire_core.errors import ConfigurationError, StorageError
from sire_core.recipes.iier.chain_network import deterministic
from sire_core.recipes.iier.chain_steps import step_loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray, IntArray
    from sire_core.recipes.iier.chain_steps import TextStep

__all__ = ["EncoderScorer", "train_encoder"]

_EDGE = 3
"""Features of an edge: structural, semantic and keyword weight (eq. 2)."""
_BATCH = 64
"""Texts that are embedded at once when nothing is learned."""
_UNBOUNDED = 1_000_000
_LOADING = frozenset(("attn_implementation", "auto_map", "quantization_config", "use_kernels", "trust_remote_code"))
_TOKENIZING = threading.Lock()
_NEEDED = 'The encoder scorer needs transformers, which the extra "local" brings: pip install "sire-rag[torch,local]"'


class EncoderScorer(nn.Module):
    """score = f_n([E_query; E_path; E_neighbour; f_r(w_struc, w_sim, w_kw)]), all of it trained.

    Args:
        encoder: A transformer of the transformers library, such as roberta-base; one for all three texts.
        tokenizer: Its tokenizer, a fast one.
        max_tokens: Longest text; a path keeps its last tokens, a question and a passage their first.
    """

    def __init__(self, encoder: Any, tokenizer: Any, max_tokens: int = 512) -> None:
        super().__init__()
        self.encoder, self._tokenizer = encoder.float(), tokenizer  # files in half precision cannot be trained as such
        size = int(encoder.config.hidden_size)
        self._max_tokens = min(max_tokens, _longest(encoder), int(tokenizer.model_max_length))
        self.edge = nn.Sequential(nn.Linear(_EDGE, size), nn.ReLU(), nn.Linear(size, size))
        self.score = nn.Sequential(nn.Linear(4 * size, size), nn.ReLU(), nn.Linear(size, 1))

    @classmethod
    def from_folder(cls, folder: str | Path, max_tokens: int = 512, seed: int = 0) -> EncoderScorer:
        """An encoder that was trained for its language, and new MLPs.

        Args:
            folder: A folder of transformers or sentence-transformers, or a name that the library knows.
            max_tokens: See the class.
            seed: Of the first weights of the MLPs.

        Raises:
            ConfigurationError: transformers is missing, or the folder holds no model with a fast tokenizer.
        """
        library = _transformers()
        inner = Path(folder) / "0_Transformer"  # where older sentence-transformers keep it
        place = str(inner if inner.is_dir() else folder)
        try:
            encoder, tokenizer = library.AutoModel.from_pretrained(place), library.AutoTokenizer.from_pretrained(place)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{folder} holds no transformer with a tokenizer ({error}).") from error
        if getattr(tokenizer, "backend_tokenizer", None) is None:
            raise ConfigurationError(f"{folder} has no fast tokenizer (tokenizer.json), which a checkpoint keeps.")
        with deterministic(seed, threads=None):
            return cls(encoder, tokenizer, max_tokens)

    @classmethod
    def from_checkpoint(cls, weights: Mapping[str, NDArray[np.float32]], about: Mapping[str, Any]) -> EncoderScorer:
        """The scorer that was saved.

        Args:
            weights: From `arrays`.
            about: From `about`.

        Raises:
            ConfigurationError: transformers is missing.
            StorageError: They do not fit; the message goes on from the name of the file.
        """
        library = _transformers()
        from tokenizers import Tokenizer

        try:
            config = library.AutoConfig.for_model(**_plain(about["config"]))
            tokenizer = library.PreTrainedTokenizerFast(
                tokenizer_object=Tokenizer.from_str(about["tokenizer"]), **about["special"]
            )
            with deterministic(0, threads=None):
                encoder = library.AutoModel.from_config(config, attn_implementation="eager")
                made = cls(encoder, tokenizer, int(about["max_tokens"]))
            tensors = {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}
            found = made.load_state_dict(tensors, strict=False)
        except Exception as error:  # tokenizers raises nothing narrower, and a card may say anything
            raise StorageError(f"does not hold the encoder that its card names ({error}). Train it again.") from error
        if found.unexpected_keys or set(found.missing_keys) & set(made.arrays()):
            raise StorageError(f"does not hold all weights of its encoder ({found}). Train it again.")
        return made.eval()

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name, copied; counts and other buffers of whole numbers are none."""
        found = {name: tensor.detach() for name, tensor in self.state_dict().items() if tensor.is_floating_point()}
        return {name: tensor.to(torch.float32).numpy().copy() for name, tensor in found.items()}

    def about(self) -> dict[str, Any]:
        """What is needed beside the weights to make the scorer again, as JSON."""
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
        """Logits of candidates, `[c]`.

        Args:
            questions: Of every decision.
            paths: Texts of every decision's chain, concatenated in its order.
            candidates: Texts, `c` of them.
            edges: Rows of `ChainGraph.features`, `[c, 3]`.
            owners: Decision of every candidate, int64 `[c]`.
        """
        around = self.embed(questions)[owners], self.embed(paths, keep_end=True)[owners]
        return self._joined(*around, self.embed(candidates), edges)

    def _joined(
        self, questions: torch.Tensor, paths: torch.Tensor, candidates: torch.Tensor, edges: torch.Tensor
    ) -> torch.Tensor:
        """The four vectors of every candidate, scored."""
        shared = edges * edges.new_tensor([1.0, 1.0, 0.2])  # five keywords at most: w_kw / 5
        logits: torch.Tensor = self.score(torch.cat((questions, paths, candidates, self.edge(shared)), dim=1))[:, 0]
        return logits

    def embed(self, texts: Sequence[str], *, keep_end: bool = False) -> torch.Tensor:
        """Mean of the last layer over the tokens of each text, `[n, size]`.

        Args:
            texts: Longer ones are cut.
            keep_end: Whether the beginning is cut off instead of the end.
        """
        with _TOKENIZING:  # the side belongs to the tokenizer, which searches in several threads share
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
                self.embed(texts[at : at + _BATCH], keep_end=keep_end).numpy() for at in range(0, len(texts), _BATCH)
            ]
        return np.concatenate(parts)

    def scores(
        self, question: FloatArray, paths: FloatArray, candidates: FloatArray, edges: FloatArray, owners: IntArray
    ) -> FloatArray:
        """Scores of candidates from `vectors`, between -1 and 1, `[c]`.

        Args:
            question: `[size]`.
            paths: Of every chain, `[a, size]`.
            candidates: `[c, size]`.
            edges: `[c, 3]`.
            owners: Chain of every candidate, `[c]`.
        """
        with torch.inference_mode():
            asked = torch.from_numpy(question).expand(len(candidates), -1)
            logits = self._joined(
                asked, torch.from_numpy(paths[owners]), torch.from_numpy(candidates), torch.from_numpy(edges)
            )
            found: FloatArray = nn.functional.softsign(logits).numpy()
        return found


def train_encoder(
    model: EncoderScorer,
    steps: Sequence[TextStep],
    *,
    epochs: int,
    batch: int,
    rates: tuple[float, float],
    loss: str,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[EncoderScorer]:
    """Train a scorer; it is given before the first pass and after each, changed in place and ready to walk with.

    Args:
        model: Changed in place.
        steps: What is right at each, and what is not.
        epochs: Passes over the steps.
        batch: Steps at once.
        rates: Learning rates of AdamW: a small one for the encoder, which knows its language, a large one for the MLPs.
        loss: One of `chain_loss.LOSSES`.
        seed: Of order and dropout.
        progress: Called as `progress(done, total)` after every batch, in steps of all passes.

    Raises:
        ConfigurationError: The loss is no number any more.
    """
    heads = [*model.edge.parameters(), *model.score.parameters()]
    optimizer = torch.optim.AdamW(
        [{"params": list(model.encoder.parameters()), "lr": rates[0]}, {"params": heads, "lr": rates[1]}]
    )
    rng = np.random.default_rng([seed, 1])
    yield model.eval()
    for epoch in range(epochs):
        order = rng.permutation(len(steps))
        model.train()
        with deterministic(seed + epoch, threads=None):
            for first in range(0, len(order), batch):
                chosen = [steps[place] for place in order[first : first + batch].tolist()]
                owners = torch.from_numpy(np.repeat(np.arange(len(chosen)), [len(step.candidates) for step in chosen]))
                logits = model(
                    [step.question for step in chosen],
                    [step.path for step in chosen],
                    [text for step in chosen for text in step.candidates],
                    torch.from_numpy(np.concatenate([step.edges for step in chosen])),
                    owners,
                )
                right = torch.from_numpy(np.concatenate([step.positive for step in chosen]).astype(np.float32))
                value = step_loss(logits, right, owners, len(chosen), loss)
                if not torch.isfinite(value):
                    raise ConfigurationError("The loss is no number any more: train with smaller learning rates.")
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
                if progress:
                    progress(epoch * len(order) + min(first + batch, len(order)), epochs * len(order))
        yield model.eval()


def _longest(encoder: Any) -> int:
    """Tokens that an encoder has positions for; RoBERTa's and MPNet's begin behind that of the padding."""
    table = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    if isinstance(table, nn.Embedding):
        return table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
    return int(getattr(encoder.config, "max_position_embeddings", None) or _UNBOUNDED)


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a card says of an encoder's shape, without what would have code or kernels loaded from elsewhere."""
    return {
        key: _plain(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if not str(key).startswith("_") and key not in _LOADING
    }


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ConfigurationError(_NEEDED) from error
    return transformers
