"""Documents, the entities that they share, and the texts that join them."""
