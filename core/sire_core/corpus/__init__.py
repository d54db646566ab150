"""Reading files, checking documents, cutting them into chunks."""
