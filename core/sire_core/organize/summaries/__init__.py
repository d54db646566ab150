"""Who writes summaries: a model, or the sources' own sentences."""
