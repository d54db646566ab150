"""Pages about a film and its people, of two tenants, among pages about bridges."""

from sire_core import Document


def pages(*people, bridges):
    """Pages by id, text, title and tenant, and pages of tenant a that share no name with them."""
    text = "Bridge number {0} spans the river Elm near mill {0}."
    return [
        *(Document(name, text, title, {"tenant": tenant}) for name, text, title, tenant in people),
        *(Document(f"o{i}", text.format(i), f"Bridge {i}", {"tenant": "a"}) for i in range(bridges)),
    ]


CHAIN = pages(
    ("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide (film)", "a"),
    ("vale", "Mira Vale was a director, the daughter of Anna Vale.", "Mira Vale", "b"),
    ("anna", "Anna Vale was a painter in Port Amber.", "Anna Vale", "a"),
    bridges=30,
)
"""One page leads to the next."""
FAMILY = pages(
    ("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide", "a"),
    ("vale", "Mira Vale married Anna Vale. Mira Vale painted Port Amber.", "Mira Vale", "a"),
    ("anna", "Anna Vale was a painter.", "Anna Vale", "b"),
    ("port", "Port Amber is a harbor.", "Port Amber", "a"),
    bridges=20,
)
