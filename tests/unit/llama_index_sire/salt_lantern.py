"""Three untitled texts and a question over two of them."""

TEXTS = {
    "film": "The Salt Lantern is a film of 1931. It was directed by Petra Quillon. The film was shot in winter.",
    "person": "Petra Quillon was born in Varn Harbour. She was a painter before. Her brother was a pilot.",
    "town": "Varn Harbour is a town with a pier. Its school was founded by Otto Brack. The pier burnt down.",
}
QUESTION = "Where was the director of The Salt Lantern born?"
