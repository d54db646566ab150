"""The page of `sire explore`: `explorer` asks the index, `server` serves it, `pages` and what is below them draw it."""
