"""Vector search: the exact scan, compressed codes and the user's own store."""
