"""Words, sentences and snippets of texts."""
