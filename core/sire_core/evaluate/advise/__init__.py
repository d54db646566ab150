"""Which recipe for this corpus: a look at it, questions made from it, recipes measured on them, one recommended."""
