"""An existing LangChain RAG chain, made multi-hop: one line changes. Runs offline.

python examples/langchain_quickstart.py
"""

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from langchain_sire import SireRetriever
from sire_core.data import demo_documents

# Your documents, as any loader and text splitter gives them. Ours tell of an invented archipelago.
documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]

# Before: retriever = InMemoryVectorStore.from_documents(documents, embedding).as_retriever()
retriever = SireRetriever.from_documents(documents, k=5)  # embedding=..., llm=...: your own LangChain models


def cited(found: list[Document]) -> str:
    return "\n\n".join(f"[{d.id}] {d.page_content}" for d in found)


prompt = ChatPromptTemplate.from_template("Answer from the context, cite ids.\n\n{context}\n\nQuestion: {question}")
chain = {"context": retriever | cited, "question": RunnablePassthrough()} | prompt  # | your chat model


def main() -> None:
    question = "In which year did the author of the novel The Weather Clerk die?"
    for found in retriever.invoke(question):
        about = found.metadata["sire"]
        print(f"{about['score']:.3f}  {found.id:<16}  {found.metadata['title']}  because: {about['path'][-1]}")
    print("People only:", [d.metadata["title"] for d in retriever.invoke(question, k=3, filter={"kind": "person"})])
    print("What the model reads:", chain.invoke(question).to_string())


if __name__ == "__main__":
    main()
