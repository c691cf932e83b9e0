"""The child process that checks and runs SPARQL over a read-only checkpoint; it is killed to stop a query.

Reads requests from stdin and writes answers to stdout, each a 4-byte big-endian length and msgpack.
Ends when stdin ends, and by itself one second after a query's limit, so it never outlives its parent
for long. Opens no network connection: on Linux the kernel refuses it sockets.
"""

import ctypes
import io
import platform
import resource
import signal
import struct
import sys
import threading
from typing import IO, TYPE_CHECKING, TypeVar

import msgspec
import pyoxigraph as ox

from pipeline.backends.graph_terms import CLASS_GRAPH_PREFIX
from pipeline.backends.sparql_guard import check_query
from pipeline.errors import InvalidQuery

if TYPE_CHECKING:
    from typing_extensions import Buffer

Format = TypeVar("Format")

READY = b"ready"
MEMORY_BYTES = 4 << 30
STACK_BYTES = 256 << 20
RECURSION = 20_000
"""Python calls that rdflib's parser may nest; the stack is sized for it."""

SOLUTION_FORMATS = {
    "application/sparql-results+json": ox.QueryResultsFormat.JSON,
    "text/csv": ox.QueryResultsFormat.CSV,
    "text/tab-separated-values": ox.QueryResultsFormat.TSV,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
}
"""For SELECT and ASK."""
TRIPLE_FORMATS = {"text/turtle": ox.RdfFormat.TURTLE, "application/n-triples": ox.RdfFormat.N_TRIPLES}
"""For CONSTRUCT and DESCRIBE."""


class Request(msgspec.Struct, frozen=True):
    """A query to run. Without a folder it is only checked."""

    sparql: str
    folder: str = ""
    """A checkpoint of the store that nobody writes to."""
    graphs: list[str] | None = None
    """IRIs of the named graphs that may be read; None: those of all access classes."""
    accept: str = ""
    max_bytes: int = 0
    seconds: float = 10.0
    """After so many and one more, the process kills itself."""


class Response(msgspec.Struct, frozen=True):
    """The serialized result, or why there is none."""

    result: bytes = b""
    refused: str = ""
    """Text of an InvalidQuery."""
    failed: str = ""
    """Text of anything else, a damaged checkpoint for one."""


class _Limited(io.BytesIO):
    """Takes what is written, up to a limit."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def write(self, data: "Buffer", /) -> int:
        if self.tell() + len(memoryview(data)) > self._limit:
            raise InvalidQuery("the result is over the size limit; add LIMIT or ask for fewer columns")
        return super().write(data)


class _Runner:
    """Runs requests; keeps the checkpoint of the last one open."""

    def __init__(self) -> None:
        self._folder, self._store = "", ox.Store()

    def run(self, request: Request) -> Response:
        signal.setitimer(signal.ITIMER_REAL, request.seconds + 1)
        try:
            _check(request.sparql)
            return Response(self._query(request) if request.folder else b"")
        except InvalidQuery as error:
            return Response(refused=error.reason)
        except (SyntaxError, ValueError) as error:
            return Response(refused=_brief(str(error)))
        except (OSError, RuntimeError, RecursionError, MemoryError) as error:
            return Response(failed=f"{type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _query(self, request: Request) -> bytes:
        store = self._open(request.folder)
        if request.graphs is None:
            graphs = [g for g in store.named_graphs() if str(g.value).startswith(CLASS_GRAPH_PREFIX)]
        else:
            graphs = [ox.NamedNode(graph) for graph in request.graphs]
        found = store.query(request.sparql, default_graph=list(graphs), named_graphs=list(graphs))
        output = _Limited(request.max_bytes)
        if isinstance(found, ox.QueryTriples):
            found.serialize(output, _format(TRIPLE_FORMATS, request.accept, "CONSTRUCT and DESCRIBE give triples"))
        else:
            found.serialize(output, _format(SOLUTION_FORMATS, request.accept, "SELECT and ASK give solutions"))
        return output.getvalue()

    def _open(self, folder: str) -> ox.Store:
        if folder != self._folder:
            self._store = ox.Store.read_only(folder)
            self._folder = folder
        return self._store


def _check(sparql: str) -> None:
    try:
        check_query(sparql)
    except InvalidQuery as refusal:
        if refusal.reason.startswith("syntax error"):
            ox.Store().query(sparql)  # words the error better; nothing to read, and no network to reach
        raise


def _brief(message: str) -> str:
    """Cut a parser's list of everything that it would have taken."""
    return message if len(message) <= 200 else message[:200].rsplit(",", 1)[0] + ", ..."


def _format(formats: dict[str, Format], accept: str, why: str) -> Format:
    if accept not in formats:
        raise InvalidQuery(f"{why}: ask for one of {', '.join(formats)}, not {accept or 'nothing'}")
    return formats[accept]


def _refuse_sockets() -> None:
    """Make socket(2) fail in this process, by a seccomp filter that needs no privilege. Linux only."""
    numbers = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
    machine = numbers.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return
    architecture, socket_call = machine
    program = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (0x20, 0, 0, 4),  # load the architecture
            (0x15, 0, 3, architecture),  # another one: allow
            (0x20, 0, 0, 0),  # load the number of the call
            (0x15, 0, 1, socket_call),
            (0x06, 0, 0, 0x00050000 | 13),  # fail with EACCES
            (0x06, 0, 0, 0x7FFF0000),  # allow
        )
    )
    code = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    libc.prctl(22, 2, ctypes.byref(header), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    runner = _Runner()
    _send(answers, READY)
    while len(header := requests.read(4)) == 4:
        request = msgspec.msgpack.decode(requests.read(int.from_bytes(header, "big")), type=Request)
        _send(answers, msgspec.msgpack.encode(runner.run(request)))


def _send(answers: IO[bytes], data: bytes) -> None:
    answers.write(len(data).to_bytes(4, "big") + data)
    answers.flush()


def main() -> None:
    """Serve stdin until it ends."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes stdin
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    _refuse_sockets()
    sys.setrecursionlimit(RECURSION)
    threading.stack_size(STACK_BYTES)
    worker = threading.Thread(target=_serve, args=(sys.stdin.buffer, sys.stdout.buffer))
    worker.start()
    worker.join()


if __name__ == "__main__":
    main()
