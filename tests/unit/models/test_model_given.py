"""What is no model or no recipe is refused when the index is made, with what to pass."""

import pytest

from sire_core import Index
from sire_core.errors import ConfigurationError
from sire_core.reason import ircot
from sire_core.testing.doubles import ScriptedModel


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ScriptedModel, r"ScriptedModel is a class \(pass an object: ScriptedModel\(...\)\).*OpenAIChat"),
        (5, "int is no language model; .*OpenAIChat"),
        ("gpt-4o", "str is no language model; .*OpenAIChat"),
    ],
)
def test_what_is_no_language_model_is_refused(given, message):
    with pytest.raises(ConfigurationError, match=message):
        Index(language_model=given)
    with Index(recipe="flat") as index, pytest.raises(ConfigurationError, match=message):
        ircot(index, "Who?", model=given)


@pytest.mark.parametrize(("given", "message"), [(int, "int is a class.*is no recipe; pass"), (5, "int is no recipe")])
def test_what_is_no_recipe_is_refused(given, message):
    with pytest.raises(ConfigurationError, match=message):
        Index(recipe=given)
