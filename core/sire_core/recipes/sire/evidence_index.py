"""`EvidenceIndex`: inverted indexes over the words, sentences and names of all passages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sire_core.arrays.grouping import by_appearance, distinct, numbered, positions_in, ranges
from sire_core.arrays.lists import Lists, PackedTexts, Ragged, arrays_of, record_of, word_keys
from sire_core.arrays.products import all_products
from sire_core.changes.runners import trim_memory
from sire_core.documents.blocks import HEADING, Block, block_text
from sire_core.documents.heading_paths import path_of, title_path
from sire_core.documents.markdown_sections import plain_heading
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.models.word_vectors import known_stems, stem_vectors
from sire_core.protocols import BoolArray, DoubleArray, FloatArray, HashArray, IdArray, IntArray, View
from sire_core.recipes.sire.passage_arrays import (
    PassageWords,
    Vocabulary,
    passage_fragments,
    stem_keys,
    untagged,
)
from sire_core.recipes.sire.sentence_names import (
    EvidenceNames,
    InflectedNames,
    NameKeys,
    SentenceNames,
    SpelledText,
    beginnings,
)
from sire_core.recipes.sire.word_lists import WordLists
from sire_core.search.ranking import ScoredRanking
from sire_core.storage.checksums import stored_texts, stored_values
from sire_core.text.languages import ENGLISH, CompoundWords, Language, language

_DERIVED_NAME = "evidence-25"
MIN_RECURRING_DOCUMENTS, MIN_MENU_LINES, MIN_LONE_WORD_DOCUMENTS = 3, 5, 10
"""A short line recurs in so many documents; so many such lines in a row are a menu; a word alone recurs in so many."""
MIN_PROSE_WORDS, MIN_PROSE_DOCUMENTS, MIN_PROSE_SHARE = 8, 20, 0.1
"""A sentence of so many words, or a line of code, is boilerplate only in so many documents and such a share of all."""
MAJORITY = 0.5
"""Share of documents in which a line alone is boilerplate; and of words of a sentence that hide its names."""
MAX_ENTRY_WORDS, MIN_ENTRIES = 12, 4  # Words of the longest entry of a table of contents, and the fewest entries of one
MIN_ALIKE_COSINE, MAX_ALIKE_STEMS = 0.5, 15
"""Least cosine of words that are alike in meaning, and how many of them count for a word of a question."""
_PATH_KEYS = ("source", "file_path", "url", "file_name")
MAX_PATH_CHARS = 1000


@dataclass(frozen=True, slots=True)
class EvidenceIndex(WordLists):
    """Inverted indexes over words (stems), sentences and names, each numbered; 1.4 kB per passage of 100 words."""

    chunks: IntArray  # position in the pool of every passage
    meant: Lists  # every few sentences of a passage, whose meanings follow
    meanings: NDArray[np.int8]  # vectors of the words that ship, `[..., MEANING_WIDTH]`; see `text_meaning`
    source: IntArray  # what each passage was cut from
    copied: IntArray  # the first passage with the text of each, whatever its title
    contents: BoolArray  # whether a passage is a table of contents
    source_sizes: IntArray  # passages of each source
    path_words: Lists  # stems of the path, file name or address of each source
    names: HashArray  # sorted keys of names (see `phrase_keys`), in other languages than English of their stems, too
    named: IntArray  # entity of each name
    own: IntArray  # entity that a passage is about, -1 for none
    mentions: Lists  # entities that a sentence names
    entities: Lists  # entities of a passage, its own among them
    holders: Lists  # passages of an entity
    owners: Lists  # passages that are about an entity
    recorded: Lists  # entities that the record of a passage names
    recorded_names: IntArray  # number of the list of names in `name_lists` under which each of them is known
    name_lists: PackedTexts  # lists of names as JSON
    labels: PackedTexts  # names of the entities that only texts open with, the last ones
    entity_ids: IdArray  # ids of the entities
    long_words: NDArray[np.uint8]  # words of languages with compounds, as bytes; see `long_words_of`
    _meant: list[tuple[IntArray, FloatArray]] = field(default_factory=list, init=False, repr=False, compare=False)
    _compounds: dict[str, CompoundWords] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, view: View, *, boilerplate: bool = False) -> EvidenceIndex:
        """The arrays of a pool, with or without boilerplate: made once per generation and kept in files."""
        name = f"{_DERIVED_NAME}-whole" if boilerplate else _DERIVED_NAME

        def made(before: EvidenceIndex | None) -> EvidenceIndex:
            return record_of(cls, view.cached_arrays(name, lambda: arrays_of(cls._read(view, boilerplate, before))))

        return view.cached_incremental(f"{name} record", made)

    @classmethod
    def _read(cls, view: View, boilerplate: bool, before: EvidenceIndex | None) -> EvidenceIndex:
        graph = EntityGraph.of(view)
        passages = PassageWords.of(view, graph.chunk_positions)
        count_read = len(passages.ids) if before is None else 0  # a change leaves little to return to the system
        trim_memory(count_read)
        names = EvidenceNames.of(passages, graph, NameKeys.of(view, graph.names.lists))
        text = SpelledText.of(passages)
        in_form = SentenceNames.of(view, passages, graph, names, text).mentions
        mentions = InflectedNames.of(view, passages, names, text, in_form)
        sources = _Sources.of(view, graph.chunk_positions, passages.languages)
        recurring = _recurring(passages, sources.source)
        if boilerplate:
            recurring[:] = False
        trim_memory(count_read)
        words = WordLists.of_passages(passages, text, recurring, before)
        trim_memory(count_read)
        hidden_words = recurring.repeat(passages.parts["fragments"]["lengths"])
        return _made(passages, graph, names, text, mentions, sources, hidden_words, words)

    def stems(self, keys: HashArray) -> IntArray:
        """Number of the stem of each of a question's words; -1 for function words and those that the corpus lacks."""
        if not len(self.words):
            return np.full(len(keys), -1)
        positions = np.minimum(np.searchsorted(self.words, keys), len(self.words) - 1)
        return np.where((self.words[positions] == keys) & (keys != 0), positions, -1)

    @property
    def language_codes(self) -> list[str]:
        """Codes of the languages of the passages, those of most first."""
        return [code.decode() for code in self.languages.tolist()]

    @property
    def is_english(self) -> bool:
        """True if most passages are in English."""
        return self.language_codes[:1] == [ENGLISH]

    def words_holding(self, part: str, spoken: Language) -> list[str]:
        """Compounds of a language that a word or its stem is a part of."""
        if not self._compounds:
            texts = json.loads(self.long_words.tobytes())
            self._compounds.update((code, CompoundWords(text, language(code).min_part)) for code, text in texts.items())
        if spoken.code not in self._compounds:
            return []
        compounds = self._compounds[spoken.code]
        return [word for form in dict.fromkeys((part, *spoken.stems([part]))) for word in compounds.holding(form)]

    def stems_alike(self, keys: HashArray) -> Iterator[tuple[IntArray, DoubleArray]]:
        """Stems nearest in meaning to each word of a question, without itself, the nearest last, and their cosines."""
        if not self._meant:  # of all stems; read when a question first needs it
            english = np.flatnonzero(self.english)
            numbers, vectors = known_stems(self.words[english], word_keys)
            self._meant.append((english[numbers], vectors))
        embedded, vectors = self._meant[0]
        cosines = all_products(stem_vectors(keys, word_keys), vectors)
        for key, row in zip(keys.tolist(), cosines, strict=True):
            near = np.flatnonzero(row >= MIN_ALIKE_COSINE)
            near = near[self.words[embedded[near]] != key]
            near = near[np.argsort(row[near], kind="stable")[-MAX_ALIKE_STEMS:]]
            yield embedded[near], row[near].astype(np.float64)

    def sentences_of(self, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Sentences of some passages, one passage after the other, and how many each has."""
        lengths = self.sentences.lengths(passages)
        return ranges(self.sentences.starts[passages], lengths), lengths

    def first_sentence(self, passage: int) -> int:
        """The first of the sentences of a passage that has any."""
        return int(self.sentences.starts[passage])

    def entities_named(self, keys: HashArray) -> Iterator[tuple[int, IntArray]]:
        """Entities of some names: for every key that is a name its position in `keys`, ascending, and whose it is."""
        first = np.searchsorted(self.names, keys, side="left")
        last = np.searchsorted(self.names, keys, side="right")
        for position in np.flatnonzero(last > first).tolist():
            yield position, self.named[first[position] : last[position]]

    def name_in(self, passage: int, entity: int) -> str:
        """Name of an entity in the record of a passage; empty if it is not there."""
        start, end = self.recorded.starts[passage : passage + 2].tolist()
        for position in (start + np.flatnonzero(self.recorded.values[start:end] == entity)).tolist():
            with stored_values("The index of names"):
                text = self.name_lists[int(self.recorded_names[position])]
            names = stored_texts(text, "a list of names")
            if names:
                return names[0]
        return ""

    def label(self, entity: int) -> str:
        """Name of an entity that only texts open with; empty for the others."""
        position = entity - (len(self.entity_ids) - len(self.labels))
        with stored_values("The index of names"):
            return self.labels[position] if position >= 0 else ""

    def entity_id(self, entity: int) -> str:
        """Id of an entity."""
        return str(self.entity_ids[entity].decode())


@dataclass(frozen=True, slots=True)
class _Sources:
    """Sources of passages: their documents, or the `source` that a splitter left in the metadata."""

    source: IntArray  # source of each passage, `[passages]`
    paths: IntArray  # number of the path of each source
    path_words: Sequence[HashArray]  # hashes of the stems of each path

    @classmethod
    def of(cls, view: View, positions: IntArray, languages_of_passages: NDArray[Any]) -> _Sources:
        pointers, chunks = view.chunk_pointers
        first = chunks[pointers[positions]]  # all chunks of a passage have the same metadata
        number, metadata = view.chunk_metadata
        source = _sources(metadata, number[first], view.chunk_documents[first])
        _, one_of = np.unique(source, return_index=True)
        paths, of_sources = list(map(_path, metadata)), number[first[one_of]]
        rows = np.flatnonzero(np.array([path != "" for path in paths], dtype=bool)[of_sources])
        spoken_paths = zip(of_sources[rows].tolist(), languages_of_passages[one_of[rows]].tolist(), strict=True)
        numbers = {("", ENGLISH): 0}
        path_numbers = np.zeros(len(one_of), dtype=np.int64)
        path_numbers[rows] = [numbers.setdefault((paths[n], code), len(numbers)) for n, code in spoken_paths]
        return cls(source, path_numbers, [_path_words(*path) for path in numbers])


def _path(metadata: Mapping[str, Any]) -> str:
    """Path, file name or address that metadata have; empty without one."""
    path: str = next((metadata[key] for key in _PATH_KEYS if isinstance(metadata.get(key), str)), "")
    return path[:MAX_PATH_CHARS]


@lru_cache(1 << 13)  # the next generation has most of them, too
def _path_words(path: str, code: str) -> HashArray:
    spoken = language(code)
    return distinct(stem_keys(spoken.words(path.replace("_", " ").replace("&", " and ")), spoken))


def _sources(metadata: Sequence[Mapping[str, Any]], number: IntArray, documents: IntArray) -> IntArray:
    """Source of passages with some metadata and documents, `[passages]`."""
    shared = np.bincount(number, minlength=len(metadata)) > 1
    shared[number[np.bincount(documents)[documents] > 1]] = True  # passages of one document may say on which page
    sources = [
        _source(own_metadata, is_shared) for own_metadata, is_shared in zip(metadata, shared.tolist(), strict=True)
    ]
    numbers = {source: position for position, source in enumerate(sources)}
    named = np.array([-1 if source is None else numbers[source] for source in sources], dtype=np.int64)[number]
    return by_appearance(np.where(named < 0, len(sources) + documents, named))[0]


def _source(metadata: Mapping[str, Any], is_shared: bool) -> str | None:
    """The text that a splitter cut a passage from; None if the metadata do not tell."""
    source = metadata.get("source")
    if not isinstance(source, str):
        return None
    if "start_index" in metadata:
        return source if type(metadata["start_index"]) is int else None  # a bool is an int, too
    return source if is_shared or path_of(metadata) else None


def _made(
    passages: PassageWords,
    graph: EntityGraph,
    names: EvidenceNames,
    text: SpelledText,
    inflected: InflectedNames,
    sources: _Sources,
    recurring: BoolArray,
    words: WordLists,
) -> EvidenceIndex:
    source, meanings = sources.source, passages.parts["meanings"]
    shown, graph_pairs = _without_boilerplate(text, recurring, inflected.mentions, graph)
    entities = names.entities(text, graph_pairs, shown)
    holders = entities.inverted(len(names.ids))
    mentions, contents = _leading(passages, names, text, shown, holders)
    all_names = np.concatenate([names.keys, inflected.keys])
    by_key = np.argsort(all_names, kind="stable")
    return EvidenceIndex(
        **{entry.name: getattr(words, entry.name) for entry in fields(words)},
        chunks=graph.chunk_positions,
        meant=Lists.of_lengths(meanings.counts, np.arange(len(meanings["codes"]))),
        meanings=meanings["codes"],
        source=source,
        copied=_copied(passages.parts["fragments"]),
        contents=contents,
        source_sizes=np.bincount(source),
        path_words=_numbers(sources.path_words, words.words).chosen(sources.paths),
        names=all_names[by_key],
        named=np.concatenate([names.owners, inflected.owners])[by_key],
        own=names.own,
        mentions=mentions,
        entities=entities,
        holders=holders,
        owners=Lists.of_pairs(names.own[names.own >= 0], np.flatnonzero(names.own >= 0), len(names.ids)),
        recorded=Lists.of_runs(graph.passages, graph.entities, len(graph.chunk_positions)),
        recorded_names=graph.names.numbers.astype(np.int32),
        name_lists=graph.names.lists.texts.narrow(),
        labels=PackedTexts.of(names.labels).narrow(),
        entity_ids=names.ids,
        long_words=_long_words(passages.vocabulary),
    )


def _long_words(vocabulary: Vocabulary) -> NDArray[np.uint8]:
    """Words of languages with compounds that are long enough for two parts, as JSON by language."""
    # English has no compounds; in most corpora other words are few.
    spoken = map(language, sorted(set(vocabulary.languages[vocabulary.languages != ENGLISH].tolist())))
    texts = {
        each.code: CompoundWords.of(set(map(untagged, vocabulary.of_language(each.code))), each.min_part).text
        for each in spoken
        if each.min_part
    }
    return np.frombuffer(json.dumps(texts).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _numbers(keys: Sequence[HashArray], words: HashArray) -> Lists:
    """Numbers of the stems in lists of hashes; those that no passage has are left out."""
    all_keys = np.concatenate([np.zeros(0, dtype=np.uint64), *keys])
    owners = np.arange(len(keys)).repeat([len(list_of_keys) for list_of_keys in keys])
    positions = np.minimum(np.searchsorted(words, all_keys), max(0, len(words) - 1))
    is_stem = (words[positions] == all_keys) & (all_keys != 0) if len(words) else np.zeros(len(all_keys), dtype=bool)
    return Lists.of_runs(owners[is_stem], positions[is_stem], len(keys))


def _recurring(passages: PassageWords, source: IntArray) -> BoolArray:
    """Which fragments are boilerplate: menus, footers, licences; titles never, `[fragments]`.

    A short line is where it stands in half of the documents, or recurs in `MIN_RECURRING_DOCUMENTS` and is one of
    `MIN_MENU_LINES` lines that do and follow one another. Facts that several documents state alike (a row of a table,
    an author, a default, a heading) stand between lines that only their document has, and are searched; a single word
    (`bash`, a number of a list) only if fewer than `MIN_LONE_WORD_DOCUMENTS` documents have it as a line.
    """
    fragments = passages.parts["fragments"]
    owners = source[fragments.groups()]
    width = int(owners.max(initial=0)) + 1
    hashes, first, key = numbered(fragments["hashes"])
    is_prose = ((fragments["lengths"][first] >= MIN_PROSE_WORDS) | (fragments["code"][first] > 0))[key]
    is_text = np.ones(len(owners), dtype=bool)
    is_text[fragments.starts()] = False
    keys, holders = np.divmod(distinct((key * width + owners)[is_text]), width)
    # Documents with the same fragments are copies of one, and count once.
    sums = np.zeros(width, dtype=np.uint64)
    np.add.at(sums, holders, hashes[keys])  # modulo 2^64: a hash of the set
    _, copied, original = numbered(sums)
    holders = np.where(sums == 0, np.arange(width), copied[original])[holders]
    counts = np.bincount(distinct(keys * width + holders) // width, minlength=len(hashes))[key]
    recurring = is_text & (
        counts >= np.where(is_prose, max(MIN_PROSE_DOCUMENTS, MIN_PROSE_SHARE * width), MIN_RECURRING_DOCUMENTS)
    )
    lines = np.flatnonzero(is_text & (fragments["lengths"] > 0))
    same, document = recurring[lines], owners[lines]
    begins = np.ones(len(lines), dtype=bool)
    begins[1:] = (same[1:] != same[:-1]) | (document[1:] != document[:-1])
    run = np.cumsum(begins) - 1
    alone = lines[np.bincount(run)[run] < MIN_MENU_LINES]
    often = np.minimum(MAJORITY * width, np.where(fragments["lengths"] == 1, MIN_LONE_WORD_DOCUMENTS, np.inf))
    recurring[alone] &= (is_prose | (counts >= often))[alone]
    return np.asarray(recurring)


def _copied(fragments: Ragged) -> IntArray:
    """The first passage with the same fragments as each, but for the title."""
    starts = fragments.starts()
    hashes = fragments["hashes"]
    sums = np.add.reduceat(hashes, starts) - hashes[starts] if len(starts) else hashes
    _, first, same = numbered(sums)
    return np.where(sums == 0, np.arange(len(sums)), first[same])


def _phrase_keys(words: HashArray, phrases: Lists) -> HashArray:
    """The key of every phrase as a name; 0 of those without a word."""
    lengths = phrases.sizes()
    keys, _ = beginnings(words, lengths)
    return np.where(lengths > 0, np.append(keys, np.uint64(0))[phrases.starts[1:] - 1], np.uint64(0))


def _contents(passages: PassageWords, heading_keys: HashArray) -> tuple[BoolArray, BoolArray]:
    """Lines of lists of headings of other passages, `[fragments]`; and which passages are tables of contents.

    These have half of their words in such lines.
    """
    fragments, headings = passages.parts["fragments"], passages.parts["headings"]
    lengths, owners = fragments["lengths"].astype(np.int64), fragments.groups()
    is_text = np.ones(len(lengths), dtype=bool)
    is_text[fragments.starts()] = False
    lines = np.flatnonzero(is_text & (lengths > 0) & (lengths <= MAX_ENTRY_WORDS))
    starts = np.cumsum(lengths) - lengths
    spelled = Lists.of_lengths(lengths[lines], passages.words.values[ranges(starts[lines], lengths[lines])])
    distinct_headings, _, number = numbered(heading_keys)
    heading = positions_in(distinct_headings, _phrase_keys(passages.vocabulary.keys[spelled.values], spelled))
    width = len(passages.ids)
    is_own_heading = np.isin(heading * width + owners[lines], number * width + headings.groups())
    entries = lines[(heading >= 0) & ~is_own_heading]
    listed = np.bincount(owners[entries], lengths[entries], minlength=width)
    words = np.bincount(owners[is_text], lengths[is_text], minlength=width)
    has_list = np.bincount(owners[entries], minlength=width) >= MIN_ENTRIES
    of_list = np.zeros(len(lengths), dtype=bool)
    of_list[entries] = has_list[owners[entries]]
    return of_list, has_list & (listed >= MAJORITY * words)


def _leading(
    passages: PassageWords, names: EvidenceNames, text: SpelledText, mentions: Lists, holders: Lists
) -> tuple[Lists, BoolArray]:
    """Mentions, without those in outlines and lists, which lead nowhere; and which passages are tables of contents."""
    heading_keys = _phrase_keys(passages.vocabulary.keys[passages.headings.values], passages.headings)
    mentions = _without_headings(mentions, holders, names, heading_keys, passages.parts["headings"].groups())
    listed, contents = _contents(passages, heading_keys)
    is_listed = listed.repeat(passages.parts["fragments"]["lengths"])
    leads = _shares(text, is_listed) <= MAJORITY
    return mentions.kept(leads.repeat(mentions.sizes())), contents


def _without_headings(
    mentions: Lists, holders: Lists, names: EvidenceNames, heading_keys: HashArray, passages: IntArray
) -> Lists:
    """Mentions, without those of names that are headings of all passages that have them: outlines are alike."""
    first = np.searchsorted(names.keys, heading_keys)
    counts = np.searchsorted(names.keys, heading_keys, side="right") - first
    width = max(1, len(names.ids))
    headed = distinct(passages.repeat(counts) * width + names.owners[ranges(first, counts)]) % width
    holder_counts = holders.sizes()
    only = (holder_counts > 0) & (np.bincount(headed, minlength=len(holder_counts)) >= holder_counts)
    only[names.own[names.own >= 0]] = False
    return mentions.kept(~only[mentions.values])


def boilerplate(view: View, documents: Sequence[str]) -> list[str]:
    """Lines of documents that `sire` does not search, each once, in their order: they recur in so many others.

    A heading in the title of its passage is searched as part of the title, and is not among them.
    """
    positions = EntityGraph.of(view).chunk_positions
    passages = PassageWords.of(view, positions)
    source = _Sources.of(view, positions, passages.languages).source
    recurring = _recurring(passages, source) & (passages.parts["fragments"]["lengths"] > 0)
    ends = np.cumsum(passages.parts["fragments"].counts)
    blank = ScoredRanking(np.zeros(view.size, dtype=np.float32), None, lambda _: ())
    lines: dict[str, None] = {}
    for hit, end in zip(view.hits(positions, np.zeros(len(positions), dtype=np.float32), blank), ends, strict=True):
        if set(documents).intersection(hit.doc_ids):
            fragments = passage_fragments(hit.unit)
            marked = recurring[end - len(fragments) : end]
            titles = {name.casefold() for name in title_path(fragments[0])}
            text, blocks = hit.unit.text, [block for block in hit.unit.blocks if block.kind == HEADING]
            headings = {text[block.start : block.end].strip() for block in blocks if _name_of(text, block) in titles}
            recurring_lines = (line.strip() for line, is_marked in zip(fragments, marked, strict=True) if is_marked)
            lines |= dict.fromkeys(line for line in recurring_lines if line not in headings)
    return list(lines)


def _name_of(text: str, heading: Block) -> str:
    return plain_heading(block_text(text, heading)).casefold()


def _shares(text: SpelledText, marked: BoolArray) -> FloatArray:
    """Share of the words of each sentence that are marked, `[sentences]`."""
    return np.asarray(text.sizes(marked) / np.maximum(1, text.sentence_sizes), dtype=np.float32)


def _without_boilerplate(
    text: SpelledText, recurring: BoolArray, mentions: Lists, graph: EntityGraph
) -> tuple[Lists, tuple[IntArray, IntArray]]:
    """Mentions outside of boilerplate, and the graph's pairs of passage and entity without those named only in it."""
    pairs = graph.passages, graph.entities
    if not recurring.any():
        return mentions, pairs
    hidden = _shares(text, recurring) > MAJORITY
    owners = mentions.owners()
    visible = ~hidden[owners]
    partly_hidden = np.zeros(len(graph.chunk_positions), dtype=bool)
    partly_hidden[text.sentence_passages[hidden]] = True  # all others are as they were
    near = np.flatnonzero(partly_hidden[text.sentence_passages][owners])
    rows = np.flatnonzero(partly_hidden[graph.passages] & ~graph.titles)
    width = int(max(graph.entities.max(initial=0), mentions.values.max(initial=0))) + 1
    codes = text.sentence_passages[owners[near]].astype(np.int64) * width + mentions.values[near]
    lost = np.setdiff1d(codes[~visible[near]], codes[visible[near]])
    stay = np.ones(len(graph.passages), dtype=bool)
    stay[rows] = ~np.isin(graph.passages[rows] * width + graph.entities[rows], lost)
    return mentions.kept(visible), (graph.passages[stay], graph.entities[stay])
