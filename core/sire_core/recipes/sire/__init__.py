"""The default recipe: passages ranked by their own evidence and by the sentences that lead to them."""
