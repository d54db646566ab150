"""Pictures of an index: the path from a question to its hits, neighbourhoods, trees; as data, SVG and HTML.

What is drawn is worked out without any framework (`picture`, `paths`, `neighbours`), from a `SearchSnapshot` and with
its filter; `drawing` lays it out; HTML is made by templates (`templates/`). The page of `sire explore` is `web`.
"""
