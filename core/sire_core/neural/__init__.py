"""Everything that trains with torch: perspectives learned by a graph network and scorers of evidence chains."""
