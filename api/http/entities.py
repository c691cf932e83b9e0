"""`GET /v1/entities` and `GET /v1/graph`."""

from typing import Annotated

import msgspec
from litestar import get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, FromQuery, QueryParameter

from api.http.given import Given
from api.retrieval.access import Asker
from api.retrieval.find_entities import FoundEntity, find_entities, resolve_entity
from api.retrieval.labels import parse_entity_id
from api.retrieval.names import Names
from api.retrieval.neighbourhood import EntityView, Neighbourhood, neighbourhood, view_entity
from api.retrieval.reader import open_reader
from api.retrieval.suggest import LONGEST, Suggester
from pipeline.errors import InvalidQuery
from pipeline.ports.runtime import Runtime
from schemas.knowledge import DocumentRef, Node
from schemas.query import Suggestion

_FACTS = 500
_NONE = "There is no such entity, or you may not know of it."


class EntityList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Entities found by name."""

    entities: list[FoundEntity]
    next: str = ""
    """Pass it as `after` for the next page; absent when there is none."""
    suggestions: list[Suggestion] = []
    """Names that may have been meant, where there is no entity of such a name."""


class SuggestionList(msgspec.Struct, frozen=True, kw_only=True):
    """Names of entities, the likest first."""

    suggestions: list[Suggestion]


@get("/v1/entities", tags=["graph"], summary="Find entities by name")
async def entities(
    asker: Given[Asker],
    runtime: Given[Runtime],
    suggester: Given[Suggester],
    q: Annotated[str, QueryParameter(max_length=200)],
    limit: Annotated[int, QueryParameter(ge=1, le=100)] = 20,
    after: Annotated[str, QueryParameter(max_length=3_000)] = "",
) -> EntityList:
    """Return entities whose label or alias holds `q`, the shortest name first."""
    if not q.strip():
        raise InvalidQuery("q is empty; give a part of a name", pointer="/q")
    async with open_reader(runtime, asker) as reader:
        page = await find_entities(reader, q.strip(), limit, after)
        likely = [] if page.entities or after else await suggester.suggest(reader, q.strip(), 5)
    return EntityList(entities=page.entities, next=page.next, suggestions=likely)


@get("/v1/suggestions", tags=["graph"], summary="Suggest names of entities")
async def suggestions(
    asker: Given[Asker],
    runtime: Given[Runtime],
    suggester: Given[Suggester],
    q: Annotated[str, QueryParameter(max_length=LONGEST)],
    limit: Annotated[int, QueryParameter(ge=1, le=20)] = 8,
) -> SuggestionList:
    """Return names that are written or read like `q`, begin so, or are one or two slips away."""
    async with open_reader(runtime, asker) as reader:
        return SuggestionList(suggestions=await suggester.suggest(reader, q, limit) if q.strip() else [])


@get("/v1/entities/{entity:path}", tags=["graph"], summary="One entity")
async def entity(entity: FromPath[str], asker: Given[Asker], runtime: Given[Runtime]) -> EntityView:
    """Return names, types, relations and documents; the id is `family:key`, as other answers give it."""
    ref = parse_entity_id(entity.removeprefix("/"))
    async with open_reader(runtime, asker) as reader:
        view = await view_entity(reader, ref, _FACTS) if ref else None
    if view is None:
        raise NotFoundException(_NONE)
    return view


@get("/v1/graph", tags=["graph"], summary="The graph around an entity or a document")
async def graph(
    asker: Given[Asker],
    runtime: Given[Runtime],
    names: Given[Names],
    entity: Annotated[str, QueryParameter(max_length=500)],
    hops: Annotated[int, QueryParameter(ge=1, le=3)] = 1,
    relations: FromQuery[str] = "",
) -> Neighbourhood:
    """Return nodes and edges; `entity` is an id, a name, or `document:<key>`; `relations` is comma separated."""
    wanted = frozenset(name.strip() for name in relations.split(",") if name.strip())
    async with open_reader(runtime, asker) as reader:
        index = await names.index(runtime.state, reader.generation, exact=False)
        start: Node | None = await resolve_entity(reader, index, entity)
        if entity.startswith("document:"):
            key = entity.removeprefix("document:")
            start = DocumentRef(key) if await reader.manifests([key]) else None
        if start is None:
            raise NotFoundException(_NONE)
        return await neighbourhood(reader, start, hops, wanted)


HANDLERS: list[HTTPRouteHandler] = [entities, suggestions, entity, graph]
