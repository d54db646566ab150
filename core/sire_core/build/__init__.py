"""The walk from documents to one commit."""
