"""Which tokens of a question are worth their time."""

from collections.abc import Sequence

import apsw

from pipeline.backends.fts5_tokens import CODE_COLUMNS, any_of, indexed_form
from pipeline.ports.chunk_index import LexicalQuery

GROWS_FROM = 10_000
_REMEMBERED = 10_000
"""Tokens of each connection that are in no chunk."""


class PostingBudget:
    """Leaves the commonest tokens out of a query whose lists of chunks would take long to walk.

    A bigram found in half of all chunks says little and costs most: 1 to 2 µs per chunk that holds it.
    Terms, then bigrams, are taken rarest first until as many chunks would be visited as the budget
    allows; the first token and all identifiers always are. The budget grows with the square root of
    the index, so that a token found in 3 % of 100,000 chunks still counts. An index small enough for
    it is searched exactly.

    What no chunk holds is left out, too, most synonyms among it: FTS5 would look for it in each of its segments.
    That is known of what a connection sees, until it sees another version of the file.
    """

    def __init__(self, budget: int) -> None:
        """Take the chunks that may be visited in an index of up to 10,000."""
        self._budget = budget
        self._counts: dict[tuple[str, str], int] = {}
        self._size = 0
        self._absent: dict[apsw.Connection, tuple[int, set[tuple[str, str]]]] = {}
        """Of each connection: the version that it saw last, and tokens that were in no chunk there."""

    def match(self, connection: apsw.Connection, query: LexicalQuery) -> tuple[str, frozenset[str], frozenset[str]]:
        """Return the FTS5 expression of the tokens that are worth it, empty when there are none; and the terms and
        the bigrams that were left out."""
        terms = [token for token in dict.fromkeys(query.terms) if token]
        bigrams = [token for token in dict.fromkeys(query.bigrams) if token]
        size = connection.execute("SELECT max(n) FROM chunk").get or 0
        asked = frozenset(terms), frozenset(bigrams)
        left_out = frozenset[str](), frozenset[str]()
        if size * (len(terms) + len(bigrams)) > self._budget:  # else they cannot exceed it
            terms, bigrams = self._affordable(connection, terms, bigrams, size)
            left_out = asked[0].difference(terms), asked[1].difference(bigrams)
            terms, bigrams = self._there(connection, "terms", terms), self._there(connection, "bigrams", bigrams)
        parts = (
            (("title", "terms"), terms),
            (("bigrams",), bigrams),
            (CODE_COLUMNS, [token for token in dict.fromkeys(query.identifiers) if token]),
        )
        match = " OR ".join(any_of(columns, tokens) for columns, tokens in parts if tokens)
        return match, *left_out

    def _affordable(
        self, connection: apsw.Connection, terms: Sequence[str], bigrams: Sequence[str], size: int
    ) -> tuple[list[str], list[str]]:
        if not self._size / 2 <= size <= self._size * 2:  # shares of a corpus move slowly
            self._counts, self._size = {}, size
        budget = self._budget * max(size / GROWS_FROM, 1) ** 0.5
        spent = 0
        kept: tuple[list[str], list[str]] = ([], [])
        for into, column, tokens in ((kept[0], "terms", terms), (kept[1], "bigrams", bigrams)):
            for count, token in sorted((self._count(connection, column, token), token) for token in tokens):
                if spent and spent + count > budget:
                    break
                spent += count
                into.append(token)
        return kept

    def _there(self, connection: apsw.Connection, column: str, tokens: Sequence[str]) -> list[str]:
        """Return the tokens that some chunk holds; those counted before are counted again if anything has changed."""
        doubtful = [token for token in tokens if not self._counts.get((column, token))]
        if not doubtful:
            return list(tokens)
        version: int = connection.pragma("data_version")
        known = self._absent.get(connection)
        if known is None or known[0] != version or len(known[1]) > _REMEMBERED:
            known = self._absent[connection] = version, set()
        absent = known[1]
        for token in doubtful:
            if (column, token) not in absent and not self._counted(connection, column, token):
                absent.add((column, token))
        return [token for token in tokens if (column, token) not in absent]

    def _count(self, connection: apsw.Connection, column: str, token: str) -> int:
        count = self._counts.get((column, token))
        return self._counted(connection, column, token) if count is None else count

    def _counted(self, connection: apsw.Connection, column: str, token: str) -> int:
        columns = dict(
            connection.execute("SELECT col, doc FROM lexical_statistics WHERE term = ?", (indexed_form(token),))
        )
        count: int = columns.get(column, 0) + (columns.get("title", 0) if column == "terms" else 0)
        self._counts[column, token] = count
        return count
