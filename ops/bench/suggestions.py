"""How fast names are suggested: `python -m ops.bench.suggestions [NAMES]`; of names alone, without HTTP and graph."""

import random
import resource
import statistics
import sys
import time
from collections.abc import Callable

from api.retrieval.similar_names import SimilarNames
from pipeline.text.readings import Readings

_KANA = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン"
_KANJI = "山川田中村本小林藤井上野原石木島松高橋斎藤清水工場保全推進課倉庫点検機械電気油圧装置"


def names(count: int, rng: random.Random) -> list[str]:
    """Return made-up names: half katakana, half kanji."""
    kinds = (_KANA, _KANJI)
    return ["".join(rng.choices(kinds[n % 2], k=rng.randint(3, 12))) + f"{n % 97}" * (n % 5 == 0) for n in range(count)]


def main() -> None:
    """Print processor times in milliseconds: they stand on a machine that does other things, too."""
    count, rng = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000, random.Random(1)
    made, similar, readings = names(count, rng), SimilarNames(), Readings()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    unread = similar.change(((f"urn:{n}", name) for n, name in enumerate(made)), ())
    added = time.perf_counter()
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    similar.learn([(name, readings.of(name)) for name in unread])
    read = time.perf_counter()
    print(f"{count} names: added in {added - started:.2f} s, {megabytes:.0f} MB")
    print(f"{len(unread)} of them read in {read - added:.2f} s")
    asked: list[tuple[str, Callable[[str], str]]] = [
        ("whole name", lambda name: name),
        ("one slip", lambda name: name[: len(name) // 2] + "ん" + name[len(name) // 2 + 1 :]),
        ("first two letters", lambda name: name[:2]),
        ("first letter", lambda name: name[:1]),
    ]
    for label, typed in asked:
        times = []
        for name in rng.sample(made, 100):
            text = typed(name)
            started = time.thread_time()
            similar.find(text, readings.of(text), 72)
            times.append((time.thread_time() - started) * 1000)
        p95 = statistics.quantiles(times, n=20)[-1]
        print(f"{label}: median {statistics.median(times):.1f} ms, p95 {p95:.1f} ms")


if __name__ == "__main__":
    main()
