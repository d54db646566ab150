"""`advise` recommends a recipe for a corpus: statistics, generated questions, recipes measured on them."""
