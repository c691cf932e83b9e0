"""schema: what an event looks like, for people who connect a source."""

from enum import StrEnum
from typing import Annotated

import typer

from ops.cli.show import print_json
from schemas.json_schema import asyncapi, event_schema


class SchemaKind(StrEnum):
    """Which description."""

    EVENT = "event"
    ASYNCAPI = "asyncapi"


def schema(
    kind: Annotated[SchemaKind, typer.Argument(help="event: JSON Schema; asyncapi: AsyncAPI 3.")] = SchemaKind.EVENT,
) -> None:
    """Print the JSON Schema of the native event, or the AsyncAPI document of the channels."""
    print_json(event_schema() if kind is SchemaKind.EVENT else asyncapi())
