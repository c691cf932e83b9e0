"""Analysis against bare Sudachi on the same texts, in turn: `python -m ops.bench.analysis [--texts FILE.jsonl]`.

Bare is Sudachi's tokenizer in mode A alone; and with reading each word's normalized form and part of speech, without
which no index can be made of it. The product's analysis does identifiers, values, terms, bigrams and offsets besides.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ops.bench.corpus import events
from ops.bench.report import machine, say
from pipeline.text.dictionary import parse_dictionary
from pipeline.text.lexicon import Lexicon
from pipeline.text.patterns import load_identifiers

ROUNDS = 7


def _texts(file: Path | None, number: int, seed: int) -> list[str]:
    if file is None:
        return [event["record"]["body"] for event in events(number, seed)]
    with file.open(encoding="utf-8") as lines:
        return [str(json.loads(line)["text"]) for _, line in zip(range(number), lines, strict=False)]


def _seconds(run: Callable[[str], object], texts: Sequence[str]) -> float:
    """Return the processor time of one pass: other processes of the machine do not count."""
    started = time.process_time()
    for text in texts:
        run(text)
    return time.process_time() - started


def _own_words() -> str:
    return "word\n" + "".join(f"試験{a}{b}号設備\n" for a in "赤青白黒緑" for b in "東西南北")


def _runs() -> Iterator[tuple[str, Callable[[str], object]]]:
    from sudachipy import Dictionary

    tokenizer = Dictionary(dict="core").create("A")
    patterns = load_identifiers().patterns
    own = Lexicon(patterns, (), parse_dictionary("own.csv", _own_words())).analyzer()
    yield "bare", tokenizer.tokenize
    yield (
        "bare with forms",
        lambda text: [(m.normalized_form(), m.part_of_speech_id()) for m in tokenizer.tokenize(text)],
    )
    yield "product", Lexicon(patterns).analyzer().terms.analyze
    yield "product with a dictionary", own.terms.analyze


def main(
    texts: Annotated[
        Path | None, typer.Option("--texts", help="JSON lines with `text`; made-up reports otherwise.")
    ] = None,
    number: Annotated[int, typer.Option("--number")] = 1_500,
    seed: Annotated[int, typer.Option("--seed")] = 1,
) -> None:
    """Print characters a second and the ratios."""
    corpus = _texts(texts, number, seed)
    characters = sum(map(len, corpus))
    say(machine(), f"{len(corpus)} texts, {characters} characters, {ROUNDS} rounds in turn; seed {seed}")
    runs = dict(_runs())
    for run in runs.values():
        _seconds(run, corpus)  # dictionaries are mapped, words and pieces known
    rounds = [{name: _seconds(run, corpus) for name, run in runs.items()} for _ in range(ROUNDS)]
    for name in runs:
        say(f"{name}: {characters / statistics.median(r[name] for r in rounds):,.0f} characters/s")
    for ours in ("product", "product with a dictionary"):
        for bare in ("bare", "bare with forms"):
            ratio = statistics.median(r[bare] / r[ours] for r in rounds)
            say(f"{ours} against {bare}: {ratio:.2f} (goal 0.5)")


if __name__ == "__main__":
    typer.run(main)
