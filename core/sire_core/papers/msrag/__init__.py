"""MS-RAG: entities, relations and passages searched apart and combined by votes."""
