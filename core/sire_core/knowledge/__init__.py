"""The entity graph: names, mentions and relations, shared by the recipes that derive from extraction records."""
