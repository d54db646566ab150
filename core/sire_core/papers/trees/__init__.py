"""Trees of summaries: clustering, layers and their maintenance, shared by `raptor` and `sirerag`."""
