"""Our side's cost of late interaction, learned sparse vectors and rerankers over 50 candidates, without any model.

`python -m ops.bench.further`. Random matrices of 32 × 128 for the question and 300 × 128 for each passage.
"""

import statistics
import time
from collections.abc import Callable

import msgspec
import numpy as np

from pipeline.backends.encoders_http import JinaMultiVectorEncoder
from pipeline.backends.model_server import ModelServer
from pipeline.backends.reranker_http import in_order
from pipeline.steps.late_interaction import dot, max_sim, pack_matrix, pack_sparse, unpack_matrix, unpack_sparse

CANDIDATES, QUERY_TOKENS, PASSAGE_TOKENS, DIMENSIONS = 50, 32, 300, 128
ROUNDS = 15


def main() -> None:
    """Print medians in milliseconds; the bare product of the same matrices is the yardstick."""
    rng = np.random.default_rng(0)
    query = _unit(rng, QUERY_TOKENS)
    passages = [_unit(rng, PASSAGE_TOKENS) for _ in range(CANDIDATES)]
    together, packed = np.concatenate(passages), [pack_matrix(one) for one in passages]
    drawn = [rng.choice(30_000, 200, replace=False).tolist() for _ in range(CANDIDATES)]
    sparse = [pack_sparse(dict.fromkeys(tokens, 1.0)) for tokens in drawn]
    asked = dict.fromkeys(range(0, 30_000, 1_000), 1.0)
    server = ModelServer("bench", "http://127.0.0.1:9")
    encoder = JinaMultiVectorEncoder(server, "bench", DIMENSIONS)
    answer = msgspec.json.encode({"data": [{"index": 0, "embeddings": passages[0].tolist()}]})
    bare = _ms(lambda: together @ query.T)
    timed: dict[str, Callable[[], object]] = {
        "MaxSim of 50 matrices": lambda: max_sim(query, passages),
        "unpacking 50 cached matrices": lambda: [unpack_matrix(one) for one in packed],
        "50 sparse vectors, unpacked and scored": lambda: [dot(asked, unpack_sparse(one)) for one in sparse],
        "parsing one matrix of a server's JSON": lambda: encoder._matrices(answer, 1),
        "50 scores of a reranker into order": lambda: in_order(server, [(n, 0.5) for n in range(50)], 50),
    }
    print(f"the bare product: {bare:.2f} ms; a cached matrix: {len(packed[0]) / 1024:.0f} KiB")
    for name, work in timed.items():
        ms = _ms(work)
        print(f"{name}: {ms:.2f} ms ({ms / bare:.2f} of the bare product)")


def _unit(rng: np.random.Generator, rows: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    found = rng.normal(size=(rows, DIMENSIONS)).astype(np.float32)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / lengths, dtype=np.float32)


def _ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
