"""What people call a record's fields: the mapping's label, else the column's name, else the field's."""

from collections.abc import Iterable

from pipeline.mapping import Mappings
from schemas.change_event import split_document_key


def field_labels(mappings: Mappings, document: str) -> dict[str, str]:
    """Return field → label for the collection of this document."""
    source, collection, _ = split_document_key(document)
    return {name: spec.label or spec.column or name for name, spec in mappings.of(source, collection).fields.items()}


def labels_by_document(mappings: Mappings, documents: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the labels for several documents."""
    return {document: field_labels(mappings, document) for document in documents}
