"""From questions to cited answers: HTTP, routing, retrieval, answering."""
