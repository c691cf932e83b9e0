"""OpenAPI descriptions of bodies that a handler reads by itself."""

from dataclasses import dataclass

from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema

_EVENT = Schema(
    type=OpenAPIType.OBJECT,
    description="A native event, a Debezium envelope, or a CloudEvent.",
    properties={
        "source": Schema(type=OpenAPIType.STRING),
        "collection": Schema(type=OpenAPIType.STRING),
        "key": Schema(type=OpenAPIType.STRING),
        "op": Schema(type=OpenAPIType.STRING, enum=["upsert", "delete"]),
        "position": Schema(one_of=[Schema(type=OpenAPIType.INTEGER), Schema(type=OpenAPIType.STRING)]),
        "occurred_at": Schema(type=OpenAPIType.STRING, description="RFC 3339; naive times are Asia/Tokyo"),
        "record": Schema(type=OpenAPIType.OBJECT),
    },
)
_EVENTS = Schema(one_of=[_EVENT, Schema(type=OpenAPIType.ARRAY, items=_EVENT)])
_SPARQL = Schema(type=OpenAPIType.OBJECT, properties={"query": Schema(type=OpenAPIType.STRING)}, required=["query"])


@dataclass
class EventsOperation(Operation):
    """Describes the body of `POST /v1/events`."""

    def __post_init__(self) -> None:
        """Add the body."""
        self.request_body = RequestBody(
            required=True,
            content={
                "application/json": OpenAPIMediaType(schema=_EVENTS),
                "application/x-ndjson": OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING)),
                "application/cloudevents+json": OpenAPIMediaType(schema=Schema(type=OpenAPIType.OBJECT)),
                "application/cloudevents-batch+json": OpenAPIMediaType(schema=Schema(type=OpenAPIType.ARRAY)),
            },
        )


@dataclass
class SparqlOperation(Operation):
    """Describes the body of `POST /v1/sparql`."""

    def __post_init__(self) -> None:
        """Add the body."""
        self.request_body = RequestBody(
            required=True,
            content={
                "application/json": OpenAPIMediaType(schema=_SPARQL),
                "application/sparql-query": OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING)),
            },
        )
