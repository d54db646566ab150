"""Pictures of an index: the path from a question to its hits, neighbourhoods, trees; as data, SVG and HTML.

What is drawn is worked out without any framework (`picture`, `paths`, `neighbours`), from a `SearchSnapshot` and with
its filter; `result_page` draws it. The page of `sire explore` is `web`.
"""
