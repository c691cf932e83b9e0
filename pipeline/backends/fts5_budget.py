"""Which tokens of a question are worth their time."""

from collections.abc import Sequence

import apsw

from pipeline.backends.fts5_tokens import CODE_COLUMNS, any_of, indexed_form
from pipeline.ports.chunk_index import LexicalQuery

GROWS_FROM = 10_000


class PostingBudget:
    """Leaves the commonest tokens out of a query whose lists of chunks would take long to walk.

    A bigram found in half of all chunks says little and costs most: 1 to 2 µs per chunk that holds it.
    Terms, then bigrams, are taken rarest first until as many chunks would be visited as the budget
    allows; the first token and all identifiers always are. The budget grows with the square root of
    the index, so that a token found in 3 % of 100,000 chunks still counts. An index small enough for
    it is searched exactly.
    """

    def __init__(self, budget: int) -> None:
        """Take the chunks that may be visited in an index of up to 10,000."""
        self._budget = budget
        self._counts: dict[tuple[str, str], int] = {}
        self._size = 0

    def match(self, connection: apsw.Connection, query: LexicalQuery) -> tuple[str, frozenset[str], frozenset[str]]:
        """Return the FTS5 expression of the tokens that are worth it, empty when there are none; and the terms and
        the bigrams that were left out."""
        terms = [token for token in dict.fromkeys(query.terms) if token]
        bigrams = [token for token in dict.fromkeys(query.bigrams) if token]
        size = connection.execute("SELECT max(n) FROM chunk").get or 0
        asked = frozenset(terms), frozenset(bigrams)
        if size * (len(terms) + len(bigrams)) > self._budget:  # else they cannot exceed it
            terms, bigrams = self._affordable(connection, terms, bigrams, size)
        parts = (
            (("title", "terms"), terms),
            (("bigrams",), bigrams),
            (CODE_COLUMNS, [token for token in dict.fromkeys(query.identifiers) if token]),
        )
        match = " OR ".join(any_of(columns, tokens) for columns, tokens in parts if tokens)
        return match, asked[0].difference(terms), asked[1].difference(bigrams)

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

    def _count(self, connection: apsw.Connection, column: str, token: str) -> int:
        count = self._counts.get((column, token))
        if count is None:
            columns = dict(
                connection.execute("SELECT col, doc FROM lexical_statistics WHERE term = ?", (indexed_form(token),))
            )
            count = columns.get(column, 0) + (columns.get("title", 0) if column == "terms" else 0)
            self._counts[column, token] = count
        return count
