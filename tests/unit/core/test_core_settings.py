"""Settings of recipes and what ids depend on."""

from dataclasses import dataclass

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.recipes import REGISTRY, flat, recipe_by_name
from sire_core.settings import Component, ResolvedSettings, UnusedSettingError, check_settings, setting
from sire_core.types import Chunk, chunk_id, content_hash, unit_id


@dataclass(frozen=True, slots=True)
class Mill:
    """A mill.

    Attributes:
        stones: How many
            stones turn.
        speed: Turns a second.
        grain: What it grinds.
        kinds: Flours.
        wind: Whether wind drives it.
    """

    stones: int = setting(2, low=1, high=9)
    speed: float | None = setting(0.5, above=0.0)
    grain: str = setting("rye", choices=("rye", "oat"))
    kinds: tuple[str, ...] = ("fine",)
    wind: bool = True

    def __post_init__(self) -> None:
        check_settings(self)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stones": 0}, "stones is a whole number from 1 to 9, not 0"),
        ({"stones": 2.0}, "stones is a whole number from 1 to 9"),
        ({"stones": True}, "stones is a whole number"),
        ({"stones": None}, "stones is a whole number"),
        ({"speed": 0}, "speed is a number above 0 or None, not 0"),
        ({"speed": float("nan")}, "speed is a number above 0"),
        ({"speed": float("inf")}, "speed is a number above 0"),
        ({"grain": "corn"}, "grain is one of rye, oat, not 'corn'"),
        ({"kinds": "()"}, r'kinds is a list, such as \["a", "b"\] or \[\], not'),
        ({"wind": 1}, "wind is true or false"),
    ],
)
def test_values_are_refused_with_what_is_allowed(given, message):
    with pytest.raises(ConfigurationError, match=message):
        Mill(**given)


def test_parts_give_a_recipe_its_settings():
    chosen = ResolvedSettings(
        {"mill_speed": 2.0, "kinds": ["bran"]}, Component(Mill, names={"speed": "mill_speed"}, without=("wind",))
    )
    assert chosen.config == {"stones": 2, "mill_speed": 2.0, "grain": "rye", "kinds": ("bran",)}
    assert chosen.make(Mill, wind=False) == Mill(speed=2.0, kinds=("bran",), wind=False)
    with pytest.raises(ConfigurationError, match=r"no setting 'grian'.*Did you mean 'grain'\? The settings of"):
        ResolvedSettings({"grian": 1}, Component(Mill))
    with pytest.raises(ConfigurationError, match="no setting 'wind'"):
        ResolvedSettings({"wind": True}, Component(Mill, without=("wind",)))


BOUNDS = [
    *(("sire", "rounds", 10), ("sire", "read_steps", 1000), ("sire", "rerank_pool", 1000), ("linearrag", "rounds", 20)),
    *(("msrag", "relation_hops", 20), ("iier", "max_length", 100), ("smart", "epochs", 100_000)),
]
"""Work that a page may ask for."""


@pytest.mark.parametrize(
    ("recipe", "settings", "message"),
    [
        ("msrag", {"hop_decay": -1}, "hop_decay is a number from 0 to 1, not -1"),
        ("msrag", {"expand": "ppr", "relation_hops": 2}, "relation_hops has no effect with expand='ppr'"),
        ("msrag", {"fusion": "priority", "hop_decay": 0.9}, "hop_decay has no effect with fusion"),
        ("msrag", {"damping": 0.3}, "damping has no effect with expand='nearby'"),
        ("msrag", {"cross_encoder": "m"}, "cross_encoder has no effect with rerank='model'"),
        ("smart", {"loss": "modularity"}, "loss has no effect with abstractor='greedy'"),
        ("sirerag", {"variant": "E", "copy_share": None}, "copy_share has no effect with variant='E'"),
        ("sirerag", {"variant": "Z"}, "variant is one of"),
        ("sirerag", {"cross": "both"}, "replace, add"),
        ("sirerag", {"cross": "add", "variant": "A"}, "it needs variant='full', not 'A'"),
        ("flat", {"ranker": "psychic"}, "ranker is one of"),
        ("iier", {"order": "chain", "decay": 0.1}, "decay has no effect with order='chain'"),
        ("iier", {"seed": 3}, "seed has no effect"),
        ("iier", {"use_kw": False, "kw_min": 2}, "kw_min has no effect"),
        ("indexrag", {"stage2": False, "tau": 5}, "tau has no effect with stage2=False"),
        ("indexrag", {"summary_tokens": 50}, "summary_tokens has no effect with stage1='qa'"),
        ("pagerank", {"damping": 1.5}, "damping is a number from 0 to 0.99"),
        ("smart", {"base": 5}, "base"),
        ("smart", {"mu": 0.001, "abstractor": "neural"}, "mu"),
        ("smart", {"sizes": (4.5, 2, 2), "abstractor": "neural"}, "sizes"),
        *(
            (recipe, {name: 1_000_000}, rf"{name} is a whole number from \d+ to {most}, not 1000000\.")
            for recipe, name, most in BOUNDS
        ),
    ],
)
def test_a_recipe_refuses_what_is_not_allowed_or_has_no_effect(recipe, settings, message):
    with pytest.raises(ConfigurationError, match=message) as found:
        recipe_by_name(recipe, **settings)
    if "no effect" in message:
        assert isinstance(found.value, UnusedSettingError)
        assert found.value.name in settings


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_setting_of_every_recipe_is_explained(name):
    recipe = recipe_by_name(name)
    assert list(recipe.texts) == list(recipe.config)
    assert [key for key, text in recipe.texts.items() if not text] == []
    assert recipe_by_name(name, **recipe.config) == recipe


@pytest.fixture(scope="module")
def index():
    index = Index(recipe="flat")
    index.build([Document("salt", "Salt is white."), Document("iron", "Iron is grey.")])
    return index


@pytest.mark.parametrize("method", ["search", "asearch", "search_many", "asearch_many", "explain", "aexplain", "show"])
async def test_a_setting_of_recipes_is_shown_where_it_belongs(index, method):
    async def call():
        result = getattr(index, method)("salt", ranker="hybrid")
        return await result if method.startswith("a") else result

    with pytest.raises(TypeError, match=rf"^Index\.{method}\(\) .*recipe=flat\(ranker='hybrid'\)"):
        await call()
    with pytest.raises(TypeError, match=r"^Index\(\) .*'rerank_model': it is a setting of recipes \(flat, msrag"):
        Index(rerank_model="m")
    advised = Index(recipe=flat(ranker="hybrid"))  # what the error says works
    advised.build(index.documents())
    assert advised.search("white salt", 1)[0].doc_ids == ("salt",)


def test_words_of_other_libraries_are_translated(index):
    for word, ours in {"top_k": "k", "limit": "k", "filters": "filter", "where": "filter"}.items():
        with pytest.raises(TypeError, match=f"no argument '{word}'; use '{ours}'"):
            index.search("salt", **{word: 1})
    with pytest.raises(TypeError, match=r"index\.using\('flat'\)"):
        index.search("salt", recipe="flat")
    with pytest.raises(TypeError, match="did you mean 'filter'"):
        index.search("salt", filte="x")
    with pytest.raises(TypeError, match=r"^Index\(\) has no argument 'llm'; use 'language_model'"):
        Index(llm=None)


def test_what_ids_depend_on():
    base = chunk_id("d", 0, "T", "x")
    assert len({base, chunk_id("e", 0, "T", "x"), chunk_id("d", 1, "T", "x"), chunk_id("d", 0, "T", "y")}) == 4
    ids = {unit_id(k, f, ("c",), t) for k in ("aku", "bridge") for f in ("1", "2") for t in ("x", "y")}
    assert len(ids) == 8
    # The same words in two documents share one extraction record.
    assert Chunk("1", "d", 0, "T", "x").hash == Chunk("2", "e", 5, "T", "x", {"k": 1}).hash == content_hash("T", "x")


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"chunker": "words"}])
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ConfigurationError):
        Index(**wrong)
