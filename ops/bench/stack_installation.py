"""An installation of its own over real servers, for the benchmarks: topics, database, space; workers and API.

Servers: a set of their own in a temporary folder, or with `--servers FOLDER` those that run in a folder of
`ops.stack`, which stay as they are; what the installation left there is removed.
"""

import argparse
import asyncio
import logging
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from psycopg.conninfo import make_conninfo

from ops import worker_check
from ops.bench.report import machine, say
from ops.stack import ports, process, servers
from ops.stack.http import answers
from ops.stack.programs import ROOT
from ops.stack.server import Endpoint
from pipeline.agents.topic_admin import create_topics
from pipeline.settings import Settings
from pipeline.stack_wiring import open_indexes, open_state, stack_topics
from schemas.change_event import document_key
from schemas.topics import Topics, analyze_group, apply_group, generation_topics, reconcile_group

FIRST = "g1"
"""The generation that a fresh installation has."""
READY_S = 180.0
STOP_S = 30.0


class Installation:
    """One installation. `changed` settings of a process: those that are other than the installation's."""

    def __init__(self, at: Mapping[str, Endpoint], sparql: str, folder: Path, **given: Any) -> None:
        """The name is random, so that several can be on the same servers."""
        self.name = f"bench{uuid.uuid4().hex[:8]}"
        self.servers, self.folder = at, folder
        weaviate = at["weaviate"]
        defaults: dict[str, Any] = {"analyzer": "stub", "embedder": "stub", "partitions": 4}
        self.settings = Settings(
            data=folder / self.name,
            profile="stack",
            kafka=at["kafka"].url,
            postgres=make_conninfo(at["postgres"].url, dbname=self.name),
            weaviate=weaviate.url,
            weaviate_grpc=f"{weaviate.host}:{weaviate.ports['grpc']}",
            sparql=at[sparql].url,
            topic_prefix=f"{self.name}.",
            space=self.name,
            **(defaults | given),
        )
        self._running: list[process.Process] = []

    @property
    def topics(self) -> Topics:
        """The topics of this installation."""
        return stack_topics(self.settings)

    async def create(self) -> None:
        """Make the database and the topics, those of the first generation too: what is measured is no creation."""
        with psycopg.connect(self.servers["postgres"].url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.name}")
        first = generation_topics(self.settings.topic_prefix, FIRST, self.settings.partitions)
        await create_topics(self.settings.kafka, [*self.topics.all(), *first.all()])

    # ---------------------------------------------------------------- processes

    async def worker(self, number: int = 1, **changed: Any) -> process.Process:
        """Start a worker and return when it has joined every group."""
        name = f"worker-{number}"
        started = self._start(["-m", "pipeline.agents", "run"], name, worker_name=name, **changed)
        prefix = self.settings.topic_prefix
        groups = (reconcile_group(prefix), analyze_group(prefix, FIRST), apply_group(prefix, FIRST))
        await self._until(
            lambda: all(worker_check.joined(self.settings.kafka, group, name) for group in groups), started, name
        )
        return started

    async def api(self, **changed: Any) -> tuple[process.Process, str]:
        """Start an API process; return it and its address once it is ready."""
        port = ports.choose(("http",), ())["http"]
        argv = ["-m", "ops.cli", "run", "--profile", "stack", "--host", ports.HOST, "--port", str(port)]
        started = self._start(argv, "api", **changed)
        url = f"http://{ports.HOST}:{port}"
        await self._until(lambda: answers(f"{url}/health/ready"), started, "api")
        return started, url

    def _start(self, argv: list[str], name: str, **changed: Any) -> process.Process:
        given = self.settings.model_dump(exclude_defaults=True) | {"data": self.folder / self.name / name} | changed
        env = {f"SHINSEN_{key.upper()}": str(value) for key, value in given.items()}
        launch = process.Launch([sys.executable, *argv], env=env, cwd=ROOT)
        started = process.spawn(launch, cwd=ROOT, log=self.log(name))
        self._running.append(started)
        return started

    async def _until(self, ready: Any, started: process.Process, name: str) -> None:
        end = asyncio.get_running_loop().time() + READY_S
        while not await asyncio.to_thread(ready):
            if not process.alive(started) or asyncio.get_running_loop().time() > end:
                raise SystemExit(f"{name} is not ready; its log ends with:\n{self.log(name).read_text()[-3000:]}")
            await asyncio.sleep(0.2)

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self.folder / f"{name}-{self.name}.log"

    async def stop(self, *which: process.Process) -> None:
        """Stop processes in order; all of them when none is named."""
        for one in which or tuple(self._running):
            await asyncio.to_thread(process.end, one, signal.SIGTERM, STOP_S)
            self._running = [other for other in self._running if other is not one]

    # ---------------------------------------------------------------- events

    async def publish(self, events: Iterable[Mapping[str, Any]], *, rate: float = 0.0) -> float:
        """Send events to the live source topic, at so many a second (0: at once); return the seconds it took."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        async with AIOKafkaProducer(bootstrap_servers=self.settings.kafka, acks="all", linger_ms=5) as producer:
            for number, event in enumerate(events):
                if rate and (pause := started + number / rate - loop.time()) > 0:
                    await asyncio.sleep(pause)
                key = document_key(event["source"], event["collection"], event["key"]).encode()
                await producer.send(self.topics.events.name, msgspec.json.encode(event), key=key)
            await producer.flush()
        return loop.time() - started

    # ---------------------------------------------------------------- the end

    async def remove(self) -> None:
        """Stop what runs; remove what the servers hold of it."""
        await self.stop()
        async with open_state(self.settings) as state:
            names = {FIRST, *(one.name for one in await state.generations())}
        for name in names:
            indexes = open_indexes(self.settings, name)
            await indexes.chunks.drop()
            await indexes.graph.drop()
            await indexes.close()
        with psycopg.connect(self.servers["postgres"].url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)")
        admin = AIOKafkaAdminClient(bootstrap_servers=self.settings.kafka)
        await admin.start()
        try:
            ours = [t for t in await admin.list_topics() if t.startswith(self.settings.topic_prefix)]
            await admin.delete_topics(ours)
        finally:
            await admin.close()


def parser(about: str | None) -> argparse.ArgumentParser:
    """Return a parser of what every benchmark of the stack may be told."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--servers", type=Path, help="folder of ops.stack whose servers run already")
    made.add_argument("--sparql", choices=("fuseki", "oxigraph"), default="fuseki")
    made.add_argument("--seed", type=int, default=1)
    return made


@contextmanager
def real_servers(arguments: argparse.Namespace, title: str) -> Iterator[tuple[dict[str, Endpoint], Path]]:
    """Start the servers that the arguments ask for; say what is measured on what; yield them and a scratch folder."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    say(f"{title} seed {arguments.seed}", machine())
    folder = Path(tempfile.mkdtemp(prefix="shinsen-bench-"))
    # PostgreSQL runs as another user and must reach its data.
    folder.chmod(0o755)
    own = folder / "servers"
    try:
        started = servers.start(("kafka", "postgres", "weaviate", arguments.sparql), arguments.servers or own)
        with psycopg.connect(started["postgres"].url) as connection:
            row = connection.execute("SELECT version(), current_setting('fsync')").fetchone()
        whose = f"shared ({arguments.servers})" if arguments.servers else "their own, started for this run"
        say(f"servers: {whose}; SPARQL by {arguments.sparql}; {str(row and row[0])[:15]}, fsync {row and row[1]}")
        yield started, folder
    finally:
        if not arguments.servers:
            servers.purge(own)
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def installed(
    at: Mapping[str, Endpoint], arguments: argparse.Namespace, folder: Path, **given: Any
) -> AsyncIterator[Installation]:
    """Make an installation, and remove it with its processes at the end."""
    one = Installation(at, arguments.sparql, folder, **given)
    await one.create()
    try:
        yield one
    finally:
        await one.remove()
