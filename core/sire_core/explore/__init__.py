"""Pictures of an index: the path from a question to its hits, neighbourhoods, trees; as data, SVG, HTML and a page.

What is drawn is worked out without any framework (`picture`, `paths`, `neighbours`), from a `SearchSnapshot` and with
its filter; `svg` and `page` draw it; `server` is the page of `sire explore`.
"""
