"""Facts of a corpus as arrays, and the aggregates that they form."""
