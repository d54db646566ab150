"""Technical and untitled text: identifiers, terms, definitions, headings, and what says nothing."""

import time

import pytest

from sire_core.extraction.record import validate
from sire_core.extraction.rules import RulesExtractor
from sire_core.types import Chunk

PAGE = """---

<!-- YAML
added: v1.0
-->

## Lease pool

Each call of `queue.claim(*, wait=10)` occupies a thread of the lease pool. Raise `BRINDLE_LEASE_THREADS`, or pass
`--allow-worker` to [the server](https://example.com/Some-Link-Target), when the lease pool is full.

* Click Save.
* Step 3: choose Create.

A beat is a short message by which a worker says that it is at work. The service level agreement (SLA) covers ERR_LEASE_LOST
and CVE-2021-46143 in `/etc/brindle/brindle.toml`.

```python
queue.peek(count=1)
total = 3
```
"""


def extract(text, title=""):
    chunk = Chunk("c", "d", 0, title, text)
    (record,) = RulesExtractor().records([chunk])
    assert validate(record, chunk) == (record, 0)
    return record


def names(text, title=""):
    return {entity.name for entity in extract(text, title).entities}


def test_a_page_of_a_manual_names_its_identifiers_and_terms():
    found = names(PAGE)
    assert {
        *("queue.claim", "BRINDLE_LEASE_THREADS", "--allow-worker", "ERR_LEASE_LOST", "CVE-2021-46143"),
        *("/etc/brindle/brindle.toml", "Lease pool", "beat", "service level agreement", "queue.peek"),
    } <= found
    assert not {"YAML", "Some-Link-Target", "Click Save", "Save", "Click", "Step 3", "Create", "Step", "Each"} & found


def test_the_heading_is_what_an_untitled_passage_is_about():
    record = extract(PAGE)
    assert record.topic == "Lease pool"
    title = next(entity for entity in record.entities if entity.name == "Lease pool")
    assert title.id in record.facts[0].entities


def test_what_a_passage_defines_carries_its_definition():
    beat = next(entity for entity in extract(PAGE).entities if entity.name == "beat")
    assert beat.description == "a short message by which a worker says that it is at work."


def test_acronyms_meet_their_long_forms():
    record = extract("A service level agreement (SLA) holds. IAM (Identity and Access Management) is on. The SLA ends.")
    aliases = {entity.name: entity.aliases for entity in record.entities}
    assert "SLA" in aliases["service level agreement"]
    assert "IAM" in aliases["Identity and Access Management"]


def test_identifiers_answer_to_their_short_forms():
    record = extract("Call `lookup()` first, then `dns.resolve(name)`. Use `true` or `null`.")
    assert [(entity.name, entity.aliases) for entity in record.entities] == [
        ("lookup()", ("lookup",)),
        ("dns.resolve", ()),
    ]


def test_phrases_that_recur_are_terms():
    text = "First the retention period begins.\n\nNobody may shorten a retention period. The second way is fine."
    assert "retention period" in names(text)
    assert "second way" not in names(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm here. Look at the Differences. Action and Information. Provide Parts.",
        "Get Started. Learn More. You can Get Started now.",
        "See Table 3 and Step 12.",
        "N/A N/A\nX X X\nGET POST",
        "It is the default. By default it is on. Default is on.",
        '<a id="Anchor-Of-Something"></a>It is off. <!-- Reviewed By Nobody --> It is on.',
    ],
)
def test_what_says_nothing_is_no_entity(text):
    assert names(text) == set()


HOSTILE = [
    "[",
    "](",
    "`",
    "``",
    "<!--",
    "<a ",
    "**",
    "_a",
    "/a",
    "a.",
    "--",
    "(",
    "A_",
    "# ",
    "|",
    "a(",
    "1.1.",
    "A ",
    "is a ",
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("glue", ["", "\n", " "])
def test_hostile_text_takes_time_in_proportion(piece, glue):
    def seconds(length):
        text = glue.join([piece] * (length // len(piece + glue)))
        start = time.process_time()
        extract(text)
        return time.process_time() - start

    seconds(1_000)
    assert seconds(12_000) < 8 * max(seconds(3_000), 0.05)
