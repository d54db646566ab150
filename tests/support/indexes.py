"""Indexes with documents in them."""

from sire_core import Index


def indexed(documents, *arguments, **options):
    """An index of some documents; further arguments are those of `Index`."""
    index = Index(*arguments, **options)
    try:
        index.build(documents)
    except BaseException:
        index.close()
        raise
    return index
