"""XML documents as notifications: families of documents, their schemas and paths, and how they are read."""
