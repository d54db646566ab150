"""Training of the scorer of evidence chains (IIER section 3.2); the extra `torch`."""
