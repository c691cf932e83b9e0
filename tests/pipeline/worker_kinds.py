"""Kinds of job for tests of the pool: what the workers run, and how the tests name it."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.model_workers.process import Definition
from pipeline.model_workers.queue import JobKind

Function = Callable[[Sequence[str]], list[bytes]]


def kind(factory: str, *, batch: int = 1, quick: bool = False, settings: str = "", name: str = "") -> JobKind[str]:
    definition = Definition(name or factory, f"{__name__}:{factory}", settings.encode())
    return JobKind(definition, lambda data: data.decode(), batch_characters=batch, quick=quick)


def echo(settings: bytes) -> Function:
    return lambda texts: [f"{settings.decode()}{text}".encode() for text in texts]


def slow(settings: bytes) -> Function:
    """Each text takes so many seconds; the answer says when it was done and by whom."""

    def work(texts: Sequence[str]) -> list[bytes]:
        time.sleep(float(settings) * len(texts))
        return [f"{text} {time.monotonic()} {os.getpid()}".encode() for text in texts]

    return work


def deadly(settings: bytes) -> Function:
    """Dies on `poison`; notes each attempt in a folder."""

    def work(texts: Sequence[str]) -> list[bytes]:
        for text in texts:
            with Path(settings.decode(), "attempts").open("a") as attempts:
                attempts.write(f"{text}\n")
            if text == "poison":
                os.kill(os.getpid(), 9)
        return [text.encode() for text in texts]

    return work


def raising(settings: bytes) -> Function:
    def work(texts: Sequence[str]) -> list[bytes]:
        if "bad" in texts:
            raise ValueError("this text is bad \ud800")
        return [f"{text} {os.getpid()}".encode() for text in texts]

    return work


def broken(settings: bytes) -> Function:
    raise ImportError("no such model")


def chatty(settings: bytes) -> Function:
    print("a library that prints on loading")
    return lambda texts: [text.encode() for text in texts]
