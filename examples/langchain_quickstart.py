"""An existing LangChain RAG chain, made multi-hop: one line changes. Runs offline.

python examples/langchain_quickstart.py
"""

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
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
    return "\n\n".join(f"[{', '.join(d.metadata['doc_ids'])}] {d.page_content}" for d in found)


prompt = ChatPromptTemplate.from_template("Answer from the context, cite ids.\n\n{context}\n\nQuestion: {question}")
model = FakeListChatModel(responses=["In 1931 [ilse-marrable]."])  # a real one: ChatOpenAI(model="gpt-4o-mini")
chain = {"context": retriever | cited, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def main() -> None:
    question = "In which year did the author of the novel The Weather Clerk die?"
    for found in retriever.invoke(question):
        print(
            f"{found.metadata['score']:.3f}  {found.metadata['kind']:<11}  {', '.join(found.metadata['doc_ids'][:3])}"
        )
    print("People only:", [d.metadata["title"] for d in retriever.invoke(question, k=3, filter={"kind": "person"})])
    print("Answer:", chain.invoke(question))


if __name__ == "__main__":
    main()
