"""Settings: fields of frozen dataclasses that say what they may be; texts that come from a folder or a page."""

from __future__ import annotations

import difflib
import inspect
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sire_core.arguments import sentence_end
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Self


class UntrustedText(str):
    """A text value of a setting that the user of this process did not write."""

    __slots__ = ("origin",)
    origin: str

    def __new__(cls, text: str, origin: Literal["folder", "page"] = "folder") -> Self:
        """Mark a text."""
        made = super().__new__(cls, text)
        made.origin = origin
        return made


def from_folder(config: Mapping[str, Any]) -> dict[str, Any]:
    """Mark settings that were read from an index folder."""
    return {name: UntrustedText(value) if isinstance(value, str) else value for name, value in config.items()}


def from_page(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Mark settings that a web page sent."""
    return {name: UntrustedText(value, "page") if isinstance(value, str) else value for name, value in settings.items()}


def is_from_folder(value: object) -> bool:
    """True if a value was read from an index folder."""
    return isinstance(value, UntrustedText) and value.origin == "folder"


def is_from_page(value: object) -> bool:
    """True if a value was sent by a web page."""
    return isinstance(value, UntrustedText) and value.origin == "page"


def is_elsewhere(path: str) -> bool:
    """True if Windows reads a path as one on another machine; opening such a file sends credentials there."""
    plain = path.replace("\\", "/")  # Windows accepts either, and both mixed
    return plain.startswith(("//", "/??/"))


def refuse_untrusted(name: str, value: str) -> None:
    """Raise if the value of a setting that names a host, a file or a model was read from an index folder."""
    if is_from_folder(value):
        raise untrusted_error(name, value)


def untrusted_error(name: str, value: str) -> ConfigurationError:
    """Return the error about a setting that only an index folder names."""
    return ConfigurationError(
        f"{name} names {str(value)!r}, but only this index folder says so, and a folder does not decide whom a search "
        f"asks or what it loads. If you know it, and want it to have your questions (a server has your key then, too), "
        f"say it yourself: --set {name}=..., or from Python Index(path, recipe=recipe_of(path, {name}=...)) with "
        f"recipe_of of sire_core.recipes, which keeps the other settings of the folder (recipe_of(path, NAME, ...) for "
        "another recipe than its default). Else search without it, for example with --set rerank=none or --set "
        "scorer=heuristic."
    )


T = TypeVar("T")

_TYPE_NAMES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "bool": ((bool,), "true or false"),
    "float": ((int, float), "a number"),
    "int": ((int,), "a whole number"),
    "str": ((str,), "a text"),
    "tuple": ((tuple, list), 'a list, such as ["a", "b"] or []'),
}


class UnknownSettingError(ConfigurationError):
    """A recipe has no such setting."""

    def __init__(self, name: str, names: Sequence[str], recipes: Sequence[str] = ()) -> None:
        # Short names are alike by chance: `dept` and `widest` have three letters in one order.
        near = difflib.get_close_matches(name, names, 3, cutoff=0.7)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        if len(recipes) > 1:
            scope = f" in any of the recipes {', '.join(recipes)}"
            see = "`sire recipes NAME` lists the settings of a recipe and explains them."
        elif recipes:
            scope = f" in the recipe {recipes[0]!r}"
            see = f"Its settings are: {', '.join(names)}. `sire recipes {recipes[0]}` explains them."
        else:
            scope, see = "", f"The settings of this recipe are: {', '.join(names)}."
        super().__init__(f"There is no setting {name!r}{scope}.{hint} {see}")
        self.name = name
        self.known = tuple(names)


class UnusedSettingError(ConfigurationError):
    """A setting has no effect beside the others."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def setting(
    default: T,
    *,
    choices: Sequence[str] = (),
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    wording: bool = False,
) -> T:
    """A field of a component with what it may be; `check_settings` refuses everything else.

    Args:
        default: Value when it is not given.
        choices: The only texts allowed.
        low: Smallest number allowed.
        high: Largest number allowed.
        above: Numbers must be larger than this.
        wording: Whether a text is words for a question, or to be looked up; it names no model, host or file, and a page
            may set it.
    """
    bounds = {"choices": tuple(choices), "low": low, "high": high, "above": above, "wording": wording}
    return field(default=default, metadata=bounds)


def check_settings(component: Any) -> None:
    """Refuse values of another type than a field is annotated with, or outside the bounds of `setting`.

    Raises:
        ConfigurationError: With the values that are allowed.
    """
    for declared in fields(component):
        value = getattr(component, declared.name)
        if not _fits(declared, value):
            end = sentence_end(value, declared.metadata.get("choices", ()))
            raise ConfigurationError(f"{declared.name} {_wanted(declared)}, not {value!r}{end}")


def refuse_unused(component: Any, beside: str, names: Sequence[str]) -> None:
    """Refuse settings that differ from their defaults although nothing reads them.

    Args:
        component: A frozen dataclass.
        beside: What makes them idle, such as `expand='ppr'`.
        names: Fields that have no effect then.

    Raises:
        UnusedSettingError: One of them was given.
    """
    for declared in fields(component):
        if declared.name in names and getattr(component, declared.name) != declared.default:
            raise UnusedSettingError(
                declared.name,
                f"{declared.name} has no effect with {beside}. Leave it out, or choose another value there.",
            )


@cache
def setting_texts(kind: type) -> Mapping[str, str]:
    """Return the description of each field, from the `Attributes:` section of the class's docstring."""
    section = (inspect.getdoc(kind) or "").partition("\nAttributes:\n")[2].split("\n\n")[0]
    texts: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        match = re.match(r"    (\w+): (.*)", line)
        if match:
            name = match[1]
            texts[name] = match[2]
        elif name:
            texts[name] += f" {line.strip()}"
    return texts


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a recipe, whose fields with plain values are settings of the recipe.

    Attributes:
        kind: A frozen dataclass.
        names: The recipe's name of a field, where it has another one.
        without: Fields that the recipe decides by itself.
        defaults: Values that the recipe has where the fields have others.
    """

    kind: type
    names: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def fields(self) -> dict[str, Field[Any]]:
        """Fields by the recipe's name of the setting."""
        return {
            self.names.get(declared.name, declared.name): declared
            for declared in fields(self.kind)
            if declared.default is not MISSING and declared.name not in self.without
        }


class ResolvedSettings:
    """The settings of one recipe: those of its parts, and what was given for them.

    Args:
        given: Values by name. A part with a static method `spelled_out` rewrites shorthands in them.
        parts: What the recipe is made of. Parts that have a setting of the same name share its value.

    Raises:
        UnknownSettingError: There is no such setting.
    """

    def __init__(self, values: Mapping[str, Any], *parts: Component) -> None:
        self._parts = {part.kind: part for part in parts}
        fields = {name: declared for part in parts for name, declared in part.fields().items()}
        for part in parts:
            if spelled_out := getattr(part.kind, "spelled_out", None):
                values = spelled_out(values)
        for name in values:
            if name not in fields:
                raise UnknownSettingError(name, tuple(fields))
            _refuse_page_text(fields[name], name, values[name])
        defaults = {name: declared.default for name, declared in fields.items()}
        for part in parts:
            defaults |= part.defaults
        self.config = {name: _plain(values.get(name, default)) for name, default in defaults.items()}
        """Every setting by name; the same values make the same recipe again."""
        self.texts = {
            name: setting_texts(part.kind).get(declared.name, "")
            for part in parts
            for name, declared in part.fields().items()
        }
        """Descriptions of the settings, by name."""

    def make(self, kind: type[T], **decided: Any) -> T:
        """A part with its settings.

        Args:
            kind: Its class.
            **decided: Fields that are no settings.

        Raises:
            ConfigurationError: A value is not allowed, or has no effect.
        """
        values = {declared.name: self.config[name] for name, declared in self._parts[kind].fields().items()}
        made = kind(**values, **decided)
        check_settings(made)
        return made

    def refuse_unused(self, kind: type, beside: str, *names: str) -> None:
        """Refuse settings of a part that nothing reads; see `refuse_unused`.

        Args:
            kind: The part.
            beside: What makes them idle.
            *names: Names of settings; all of the part's when left out.

        Raises:
            UnusedSettingError: One of them was given.
        """
        for name, declared in self._parts[kind].fields().items():
            if (not names or name in names) and self.config[name] != _plain(declared.default):
                raise UnusedSettingError(
                    name, f"{name} has no effect with {beside}. Leave it out, or choose another value there."
                )


def _refuse_page_text(declared: Field[Any], name: str, value: Any) -> None:
    """A free text may name a model, its server or a file: those who see a page do not decide about these."""
    limits = declared.metadata
    if is_from_page(value) and "str" in _names(declared) and not (limits.get("choices") or limits.get("wording")):
        raise ConfigurationError(
            f"{name} cannot be set on this page: it may name a model, a server or a file, and a page sets numbers, "
            f"switches and choices only. Say it where the page is started (sire explore DIR --set {name}=...), or in "
            "Python."
        )


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _names(declared: Field[Any]) -> set[str]:
    """Names of the types of an annotation, without what stands in brackets."""
    return set(re.findall(r"\w+", re.sub(r"\[.*\]", "", getattr(declared.type, "__name__", str(declared.type)))))


def _fits(declared: Field[Any], value: Any) -> bool:
    names = _names(declared)
    kinds = names & set(_TYPE_NAMES)
    if names != kinds | (names & {"None"}) or (value is None and "None" in names):
        return True  # objects are checked elsewhere
    if not any(isinstance(value, _TYPE_NAMES[kind][0]) for kind in kinds) or (
        isinstance(value, bool) and "bool" not in kinds
    ):
        return False
    bounds = declared.metadata
    if bounds.get("choices") and isinstance(value, str):
        return value in bounds["choices"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    low, high, above = bounds.get("low"), bounds.get("high"), bounds.get("above")
    inside = (low is None or value >= low) and (high is None or value <= high) and (above is None or value > above)
    return math.isfinite(value) and inside


def _wanted(declared: Field[Any]) -> str:
    """Describe in words which values a setting may have."""
    names, bounds = _names(declared), declared.metadata
    ways = []
    if bounds.get("choices"):
        ways.append(f"one of {', '.join(bounds['choices'])}")
    for name in sorted(names & set(_TYPE_NAMES)):
        if name == "str" and bounds.get("choices"):
            continue
        ways.append(_TYPE_NAMES[name][1] + (_range(bounds) if name in ("int", "float") else ""))
    if "None" in names:
        ways.append("None")
    return f"is {' or '.join(ways)}"


def _range(bounds: Mapping[str, Any]) -> str:
    low, high, above = bounds.get("low"), bounds.get("high"), bounds.get("above")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    if above is not None:
        return f" above {above:g}" + ("" if high is None else f" and at most {high:g}")
    if low is not None:
        return f" of at least {low:g}"
    return "" if high is None else f" of at most {high:g}"


def need_torch(what: str) -> None:
    """Raise if torch is not installed, before anything is paid or computed."""
    try:
        import torch  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ConfigurationError(f'{what} needs torch: pip install "sire-rag[torch]"') from error


def read_toml(package: str, name: str) -> dict[str, Any]:
    """Read a TOML file of a package."""
    import pkgutil  # imports less than `importlib.resources`

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    content: dict[str, Any] = tomllib.loads((pkgutil.get_data(package, name) or b"").decode())
    return content
