"""What links passages: neighbours, keywords, and the tables that remember both."""
