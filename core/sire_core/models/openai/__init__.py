"""Chat models and embedders behind OpenAI-compatible servers, over the official `openai` package."""
