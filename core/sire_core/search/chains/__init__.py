"""Evidence chains: their graph, seeds, walk, scorers and the training of a scorer."""
