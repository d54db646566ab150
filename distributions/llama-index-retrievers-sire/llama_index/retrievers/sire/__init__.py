"""The components of `llama_index_sire` under the name that LlamaIndex gives to retrievers."""

from llama_index_sire import SireRetriever

__all__ = ["SireRetriever"]
