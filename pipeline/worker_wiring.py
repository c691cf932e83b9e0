"""The composition root of a worker of the stack: the parts that `pipeline.agents.service` keeps running."""

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import faust

from pipeline.agents.analyzing import Analyzing
from pipeline.agents.applying import Applying
from pipeline.agents.delivery import Delivered
from pipeline.agents.lane_app import Take, lane_app
from pipeline.agents.outbox import Outbox
from pipeline.agents.reconciling import Reconciling
from pipeline.agents.refining import Refining
from pipeline.agents.service import Part
from pipeline.agents.sweeping import Sweep
from pipeline.agents.topic_admin import check_topics, create_topics, topic_names
from pipeline.agents.verifying import Verification
from pipeline.apply import Applier
from pipeline.backends.cache_postgres import PostgresCache
from pipeline.clock import system_clock
from pipeline.ports.state import Generation, State
from pipeline.prepare import Preparer
from pipeline.reconcile import Reconciler
from pipeline.refining import Refiner
from pipeline.settings import Settings
from pipeline.stack.lag import LagReader, Stage
from pipeline.stack_wiring import OpenIndexes, open_indexes, open_state, stack_topics
from pipeline.wiring import Configuration, new_preparer, open_models, versions
from schemas.change_event import Lane
from schemas.topics import (
    GenerationTopics,
    analyze_group,
    apply_group,
    client_id,
    generation_topics,
    reconcile_group,
    worker_of,
)

TOPICS_S = 5.0
"""Between looks for new topics of sources."""


class _Open:
    """One generation that a worker serves."""

    def __init__(
        self, indexes: OpenIndexes, topics: GenerationTopics, analyzing: Analyzing, applying: Applying
    ) -> None:
        self.indexes, self.topics, self.analyzing, self.applying = indexes, topics, analyzing, applying
        self.sweep: Sweep | None = None
        self.refining: Refining | None = None


class Workshop:
    """Implements `pipeline.agents.service.Shop` over the stack's servers."""

    def __init__(
        self,
        settings: Settings,
        configuration: Configuration,
        state: State,
        preparer: Preparer,
        outbox: Outbox,
        lag: LagReader,
        vector_model: str,
        built_with: dict[str, str],
    ) -> None:
        self._settings, self._configuration, self._state = settings, configuration, state
        self._preparer, self._outbox, self._lag, self._vector_model = preparer, outbox, lag, vector_model
        self._topics = stack_topics(settings)
        name = settings.worker_name or f"shinsen-{socket.gethostname()}-{os.getpid()}"
        self._client = client_id(name, built_with)
        self._writer = f"{name}-{uuid.uuid4().hex[:8]}"
        self._open: dict[str, _Open] = {}
        self._read: list[str] = []
        self._looked = 0.0
        self._reconciling = Reconciling(
            state,
            configuration.mappings,
            Reconciler(state),
            outbox,
            max_event=settings.max_event,
            clock=system_clock,
        )

    async def open_generation(self, generation: Generation, *, announces: bool) -> None:
        """See Shop.open_generation."""
        name, prefix = generation.name, self._settings.topic_prefix
        topics = generation_topics(prefix, name, self._settings.partitions)
        await create_topics(self._settings.kafka, topics.all())
        await check_topics(self._settings.kafka, topics.all())
        indexes = open_indexes(self._settings, name)
        applier = Applier(
            name,
            self._state,
            indexes.chunks,
            indexes.graph,
            self._configuration.text_facts,
            vector_model=self._vector_model,
            announces=announces,
            writer=self._writer,
        )
        analyzing = Analyzing(name, topics, self._state, self._preparer, self._outbox, system_clock)
        applying = Applying(topics, self._state, self._preparer, applier, self._outbox, system_clock)
        analyzing.announces = announces
        one = self._open[name] = _Open(indexes, topics, analyzing, applying)
        verification = Verification(name, self._state, indexes.chunks, indexes.graph)
        left = partial(self._left, name, topics)
        one.sweep = Sweep(self._state, applier, verification, applying.send_references, left)
        if self._preparer.refines:
            again = partial(self._again, name, applying)
            one.refining = Refining(Refiner(name, self._state, self._preparer, again), left)

    async def _again(self, generation: str, applying: Applying, documents: Sequence[str]) -> None:
        """Have documents published once more, by whoever has their partitions."""
        await self._state.mark_relinks(generation, documents)
        await applying.send_references(documents)

    async def _left(self, generation: str, topics: GenerationTopics) -> int:
        """Return how many messages of a generation's stages nobody has acknowledged."""
        prefix, records = self._settings.topic_prefix, (self._topics.records.name, self._topics.records_bulk.name)
        stages = [
            Stage("analyze", analyze_group(prefix, generation), records),
            Stage("apply", apply_group(prefix, generation), tuple(topic.name for topic in topics.all())),
        ]
        lag = await self._lag.read(stages)
        return lag.of("analyze", "apply")

    async def close_generation(self, name: str) -> None:
        """See Shop.close_generation."""
        one = self._open.pop(name, None)
        if one is not None and one.refining is not None:
            await one.refining.stop()
        if one is not None:
            await one.indexes.close()

    async def close(self) -> None:
        """Let go of all generations; idempotent."""
        for name in list(self._open):
            await self.close_generation(name)

    async def others(self, generation: str) -> list[str]:
        """See Shop.others."""
        prefix, (_, mine) = self._settings.topic_prefix, self._client.split("@")
        groups = [analyze_group(prefix, generation), apply_group(prefix, generation)]
        return sorted(worker_of(one) for one in await self._lag.clients(groups) if not one.endswith(f"@{mine}"))

    def announce(self, live: str) -> None:
        """See Shop.announce."""
        for name, one in self._open.items():
            one.applying.applier.announces = one.analyzing.announces = name == live

    async def app(self, part: Part) -> faust.App:
        """See Shop.app."""
        group, topics, take = await self._served(part)
        folder = self._settings.data / "faust" / group / part.lane
        folder.mkdir(parents=True, exist_ok=True)  # Faust makes the last part of it only
        return lane_app(
            group,
            topics,
            part.lane,
            take,
            bootstrap=self._settings.kafka,
            client=self._client,
            folder=folder,
        )

    async def _served(self, part: Part) -> tuple[str, list[str], Take]:
        prefix, bulk = self._settings.topic_prefix, part.lane == "bulk"
        if part.stage == "reconcile":
            sources = [self._topics.events_bulk.name] if bulk else [self._topics.events.name, *await self._sources()]
            return reconcile_group(prefix), sources, self._reconciling.take
        one = self._open[part.generation]
        if part.stage == "analyze":
            records = self._topics.records_bulk if bulk else self._topics.records
            return analyze_group(prefix, part.generation), [records.name], _on(one.analyzing, part.lane)
        analyzed = one.topics.analyzed_bulk if bulk else one.topics.analyzed
        return apply_group(prefix, part.generation), [analyzed.name], _on(one.applying, part.lane)

    async def _sources(self) -> list[str]:
        self._looked = asyncio.get_running_loop().time()
        self._read = await topic_names(self._settings.kafka, self._settings.source_topics)
        return self._read

    async def outdated(self) -> list[Part]:
        """See Shop.outdated: a table that was added has a topic of its own, which a pattern of the settings matches."""
        patterns = [one for one in self._settings.source_topics if one.startswith("^")]
        now = asyncio.get_running_loop().time()
        if not patterns or not self._looked or now < self._looked + TOPICS_S:
            return []
        self._looked = now
        new = set(await topic_names(self._settings.kafka, patterns)) - set(self._read)
        return [Part("reconcile", "", "live")] if new else []

    async def look_after(self, apps: Mapping[Part, Any]) -> None:
        """See Shop.look_after: sweep and refine the generations whose first partition is here."""
        for name, one in list(self._open.items()):
            app = apps.get(Part("apply", name, "live"))
            first = (one.topics.analyzed.name, 0)
            if app is not None and one.sweep is not None and first in {tuple(tp) for tp in app.consumer.assignment()}:
                await one.sweep.sweep()
                if one.refining is not None:
                    one.refining.go_on()


def _on(stage: Analyzing | Applying, lane: Lane) -> Take:
    async def take(batch: Any) -> None:
        messages: list[Delivered] = list(batch)
        await stage.take(messages, lane)

    return take


@asynccontextmanager
async def open_workshop(settings: Settings) -> AsyncIterator[tuple[Workshop, State, dict[str, str]]]:
    """Open what a worker needs; yield the shop, the state store, and the versions of what it builds."""
    configuration = Configuration(settings)
    async with AsyncExitStack() as stack:
        analyzer, embedder = await stack.enter_async_context(open_models(settings, configuration.lexicon))
        state = await stack.enter_async_context(open_state(settings))
        cache = PostgresCache(settings.postgres)
        stack.push_async_callback(cache.close)
        outbox = Outbox(settings.kafka, stack_topics(settings))
        stack.push_async_callback(outbox.close)
        await outbox.open()
        lag = LagReader(settings.kafka, system_clock)
        stack.push_async_callback(lag.close)
        preparer = new_preparer(settings, configuration, cache, analyzer, embedder)
        built_with = versions(configuration, analyzer, embedder)
        shop = Workshop(settings, configuration, state, preparer, outbox, lag, embedder.model, built_with)
        stack.push_async_callback(shop.close)
        yield shop, state, built_with
