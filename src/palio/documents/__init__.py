"""XML documents as notifications: families of documents, their schemas and paths, and how a document is read."""
