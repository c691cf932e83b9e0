"""Request bodies: strict JSON, with a pointer to what is wrong."""

import re
from typing import Any, Generic, TypeVar

import msgspec
from litestar._openapi.schema_generation import SchemaCreator
from litestar.connection import ASGIConnection
from litestar.dto import DTOConfig, MsgspecDTO
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler
from litestar.openapi.spec import Reference, Schema
from litestar.typing import FieldDefinition

from pipeline.errors import InvalidQuery

Body = TypeVar("Body", bound=msgspec.Struct)
_PLACED = re.compile(r"^(?P<what>.*) - at `\$(?P<where>[^`]*)`$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`|missing required field `(?P<missing>[^`]*)`")
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]")


def decode_body(raw: bytes, kind: type[Body]) -> Body:
    """Read a JSON body. Raises InvalidQuery with the JSON pointer of the first thing that is wrong."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise invalid(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidQuery(f"The body is not JSON in UTF-8: {error}") from error
    except RecursionError as error:
        raise InvalidQuery("The body is nested too deeply.") from error


def invalid(message: str) -> InvalidQuery:
    """Turn msgspec's message with its `$.a[0].b` into an error with the pointer `/a/0/b`."""
    placed = _PLACED.match(message)
    what, where = (placed["what"], placed["where"]) if placed else (message, "")
    known, _, unknown = where.partition("[...]")  # a value of a mapping, of which msgspec does not tell the key
    steps = [step["name"] or step["index"] for step in _STEP.finditer(known)]
    if not unknown and (named := _UNKNOWN.search(what)):
        steps.append(named["name"] or named["missing"])
    pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
    return InvalidQuery(what, pointer=pointer)


class StrictBody(MsgspecDTO[Body], Generic[Body]):
    """Decodes `data` with `decode_body`; OpenAPI shows the plain type."""

    config = DTOConfig()

    def decode_bytes(self, value: bytes) -> Any:
        """Decode strictly."""
        return decode_body(value, self.model_type)

    @classmethod
    def create_for_field_definition(
        cls, field_definition: FieldDefinition, handler_id: str, backend_cls: Any = None
    ) -> None:
        """Make no transfer model: the type itself is decoded."""

    @classmethod
    def create_openapi_schema(
        cls, field_definition: FieldDefinition, handler_id: str, schema_creator: SchemaCreator
    ) -> Reference | Schema:
        """Describe the type itself."""
        return schema_creator.for_field_definition(field_definition)


async def json_only(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Refuse other media types: a guard, asynchronous because Litestar hands others to a thread."""
    check_json(connection)


def check_json(connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Refuse other media types: what is no JSON cannot come from a plain HTML form either."""
    media = connection.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise HTTPException(status_code=415, detail=f"Send application/json, not {media}.")
