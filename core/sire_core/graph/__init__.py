"""The one stored form of graphs: columns in blocks of documents, and an index of the names in them."""
