"""Recorded answers for scripted models, and plans of what goes wrong with a model's calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from sire_core.errors import ConfigurationError
from sire_core.extraction.record import to_json
from sire_core.testing.doubles import Script, ScriptedCall, default_script
from sire_core.types import Chunk, digest


def replay(extractions: str | Path, corpus: str | Path, fallback: Script = default_script) -> Script:
    """A script that answers extraction prompts with recorded extractions, found by the passage in the prompt.

    The answers are the records of `RecordedExtractor`, so that a build over a server and one from the recording can be
    compared.
    """
    from sire_core.extraction.record import RecordedExtractor

    recorded = RecordedExtractor(extractions, link_titles=False)
    known = {
        _squeezed(line["text"]): Chunk(line["id"], line["id"], 0, line["title"], line["text"])
        for line in _lines(corpus)
    }

    def script(call: ScriptedCall) -> str:
        passage = call.fields.get("passage")
        chunk = known.get(_squeezed(passage)) if isinstance(passage, str) else None
        if chunk is None or call.schema is None:
            return fallback(call)
        return to_json(recorded.records([chunk])[0])

    return script


def _lines(path: str | Path) -> list[dict[str, Any]]:
    with Path(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _squeezed(text: str) -> str:
    """Letters and digits only: fencing and escaping may change the rest."""
    return "".join(letter for letter in text if letter.isalnum())


Fault = Literal[
    "fenced",  # the JSON inside a code fence, with prose around it
    "trailing_comma",  # commas before closing brackets
    "garbage",  # prose with a bracket that never closes
    "wrong_schema",  # valid JSON of another shape
    "empty",  # no text at all
    "half_answer",  # cut off, finish_reason length
    "half_body",  # the connection closes in the middle of the response
    "stall",  # the response stops in the middle, and the connection stays open
    "reset",  # the connection is reset before the response
    "not_json",  # 200 with a web page
    "rate_limit",  # 429 with Retry-After in seconds
    "rate_limit_date",  # 429 with Retry-After as a date
    "server_error",  # 500
    "timeout",  # no response
    "refusal",  # message.refusal
    "content_filter",  # finish_reason content_filter
]
FAULTS: tuple[Fault, ...] = get_args(Fault)

FaultPlan = Callable[[ScriptedCall], "Fault | None"]
"""Decides what goes wrong with a call; called once per request, so a plan may count."""


def no_faults(_call: ScriptedCall) -> Fault | None:
    return None


def at_calls(faults: Mapping[int, Fault]) -> FaultPlan:
    _check(faults.values())
    return lambda call: faults.get(call.number)


def always(fault: Fault, when: Callable[[ScriptedCall], bool] = lambda _: True) -> FaultPlan:
    """The same fault for every call that `when` accepts."""
    _check([fault])
    return lambda call: fault if when(call) else None


def first(fault: Fault, times: int = 1, when: Callable[[ScriptedCall], bool] = lambda _: True) -> FaultPlan:
    """The fault for the first `times` calls with the same input; repairs and repetitions count."""
    _check([fault])
    return lambda call: fault if call.attempt < times and when(call) else None


def by_chance(chances: Mapping[Fault, float], seed: int = 0) -> FaultPlan:
    """Faults with given probabilities, which depend on seed, input and attempt, not on the order of arrival."""
    _check(chances)
    if sum(chances.values()) > 1:
        raise ConfigurationError("the chances of faults add up to more than 1")

    def plan(call: ScriptedCall) -> Fault | None:
        roll = int(digest(str(seed), call.input, str(call.attempt), size=6), 16) / 2.0**48
        for fault, chance in chances.items():
            if roll < chance:
                return fault
            roll -= chance
        return None

    return plan


def _check(faults: Collection[Fault]) -> None:
    unknown = [fault for fault in faults if fault not in FAULTS]
    if unknown:
        raise ConfigurationError(f"unknown faults {unknown}; there are: {', '.join(FAULTS)}")
