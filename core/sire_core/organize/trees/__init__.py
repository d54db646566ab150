"""Trees of summaries: levels, what they remember, how they follow a change."""
