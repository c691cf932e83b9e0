"""How a chunk lies in SQLite: schema, rows to chunks and back."""

import zlib
from collections.abc import Callable, Sequence
from sys import intern
from typing import Any

import apsw
import msgspec
import sqlite_vec

from pipeline.backends.fts5_tokens import TOKENIZER, column_text
from pipeline.ports.chunk_index import ChunkText
from pipeline.text.hashed import HashedTerms
from pipeline.text.pairs import packed_pairs
from schemas.document import Analysis, IndexedChunk
from schemas.knowledge import Mention

COLUMNS = ("title", "terms", "bigrams", "identifiers")
"""Columns of the lexical index, in the order of `Tokens`."""

_TOKEN_COLUMNS = ", ".join(f"column_text(tokens, {i}) AS {name}" for i, name in enumerate(COLUMNS))
SCHEMA = f"""
CREATE TABLE access_class (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE chunk (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, document TEXT NOT NULL, class INTEGER NOT NULL,
    source TEXT NOT NULL, collection TEXT NOT NULL, type TEXT NOT NULL, updated_at TEXT NOT NULL,
    fields BLOB NOT NULL, vector_model TEXT NOT NULL
);
CREATE INDEX chunk_by_document ON chunk (document);
CREATE TABLE chunk_field (name TEXT, value TEXT, n INTEGER, PRIMARY KEY (name, value, n)) WITHOUT ROWID;
-- Apart from `chunk`, so that filters walk small rows.
CREATE TABLE content (n INTEGER PRIMARY KEY, body BLOB NOT NULL, tokens BLOB NOT NULL);
CREATE VIEW chunk_tokens AS SELECT n, {_TOKEN_COLUMNS} FROM content;
-- The index keeps no copy of the tokens; `chunk_tokens` gives them back for removals and checks.
CREATE VIRTUAL TABLE lexical USING fts5(
    {", ".join(COLUMNS)}, content='chunk_tokens', content_rowid='n', tokenize="{TOKENIZER}"
);
CREATE VIRTUAL TABLE lexical_statistics USING fts5vocab(lexical, 'col');
CREATE TABLE memo (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""  # noqa: S608

ADDITIONS = """
-- With the row of `vector`. Apart from `content`: it goes with the model, not with the text.
CREATE TABLE IF NOT EXISTS sentence_vectors (n INTEGER PRIMARY KEY, packed BLOB NOT NULL);
"""

Tokens = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Title terms, terms, bigrams, identifiers."""
Body = tuple[str, str, tuple[str, ...], tuple[Mention, ...]]
"""Text, title, headings, mentions."""

_encode = msgspec.msgpack.Encoder().encode
_decode_tokens: Callable[[bytes], Tokens] = msgspec.msgpack.Decoder(Tokens).decode
_decode_body: Callable[[bytes], Body] = msgspec.msgpack.Decoder(Body).decode

_decode_head: Callable[[bytes], tuple[str, msgspec.Raw, tuple[str, ...], msgspec.Raw]] = msgspec.msgpack.Decoder(
    tuple[str, msgspec.Raw, tuple[str, ...], msgspec.Raw]
).decode
"""As `Body`, without making objects of mentions, which no search reads."""

TEXT_SELECT = """
SELECT c.id, s.packed, x.body, x.tokens FROM chunk c JOIN content x ON x.n = c.n
LEFT JOIN sentence_vectors s ON s.n = c.n
"""
CHUNK_SELECT = """
SELECT c.n, c.id, c.document, a.id, c.source, c.collection, c.type, c.updated_at, c.fields, c.vector_model,
       x.body, x.tokens FROM chunk c JOIN access_class a ON a.n = c.class JOIN content x ON x.n = c.n
"""


class EncodedChunk(msgspec.Struct, frozen=True):
    """A chunk with its blobs made, ready for the writer thread."""

    chunk: IndexedChunk
    fields: bytes
    body: bytes
    tokens: bytes


def prepare_connection(connection: apsw.Connection) -> None:
    """Give a connection what the schema needs: sqlite-vec, `column_text`, wiping of removed rows."""
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)
    connection.create_scalar_function("column_text", _column_text, 2, deterministic=True)
    connection.pragma("secure_delete", True)


def _column_text(*arguments: Any) -> str:
    tokens, column = arguments
    return column_text(unpack_tokens(tokens)[column])


def unpack_tokens(blob: bytes) -> Tokens:
    """Return the tokens of a row, by column."""
    return _decode_tokens(zlib.decompress(blob))


def encode_chunks(chunks: Sequence[IndexedChunk]) -> list[EncodedChunk]:
    """Make the blobs of many chunks (some 100 µs each: call it off the event loop)."""
    return [_encode_chunk(chunk) for chunk in chunks]


def _encode_chunk(chunk: IndexedChunk) -> EncodedChunk:
    found = chunk.analysis
    body: Body = (chunk.text, chunk.title, chunk.headings, found.mentions)
    tokens: Tokens = (chunk.title_terms, found.terms, found.bigrams, found.identifiers)
    return EncodedChunk(
        chunk,
        msgspec.json.encode(chunk.fields, order="sorted"),
        zlib.compress(_encode(body), 1),
        zlib.compress(_encode(tokens), 1),
    )


def decode_chunk(row: tuple[Any, ...], vector: bytes | None, sentences: bytes | None = None) -> IndexedChunk:
    """Make a chunk of a row of CHUNK_SELECT and its vectors; without one it names no model."""
    text, title, headings, mentions = _decode_body(zlib.decompress(row[10]))
    title_terms, terms, bigrams, identifiers = unpack_tokens(row[11])
    return IndexedChunk(
        id=row[1],
        document=row[2],
        text=text,
        title=title,
        headings=headings,
        analysis=Analysis(terms=terms, bigrams=bigrams, identifiers=identifiers, mentions=mentions),
        title_terms=title_terms,
        vector=vector,
        vector_model=row[9] if vector is not None else "",
        sentence_vectors=sentences or b"",
        access_class=row[3],
        source=row[4],
        collection=row[5],
        type=row[6],
        updated_at=row[7],
        fields=msgspec.json.decode(row[8]),
    )


def decode_text(body: bytes, tokens: bytes) -> ChunkText:
    """Make of a row's blobs what a search reads (some 100 µs)."""
    text, _, headings, _ = _decode_head(zlib.decompress(body))
    title_terms, terms, bigrams, _ = unpack_tokens(tokens)
    # The same words stand in many chunks: kept once, a chunk in the cache takes a third.
    words = HashedTerms(map(intern, terms)), tuple(map(intern, title_terms))
    return ChunkText(text, headings, *words, packed_pairs(bigrams))


def with_sentences(text: ChunkText, packed: bytes | None) -> ChunkText:
    """Return what is shared with other searches, with the vectors of its sentences as the row has them now."""
    return msgspec.structs.replace(text, sentence_vectors=packed) if packed else text
