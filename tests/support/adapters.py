"""What both adapters promise is tested once, over `ADAPTERS`: each installed one, in one set of words."""

from importlib.util import find_spec

ADAPTERS = []
if find_spec("langchain_core"):
    from support.langchain_adapter import LangChain

    ADAPTERS.append(LangChain())
if find_spec("llama_index"):
    from support.llama_index_adapter import LlamaIndex

    ADAPTERS.append(LlamaIndex())
