"""Errors, named by what the caller does next."""


class ShinsenError(Exception):
    """Base of all errors that Shinsen raises on purpose; the text says what, where, and what next."""


class InvalidEvent(ShinsenError):
    """The event can never be applied as it is: put it in the dead letters under `code`."""

    def __init__(self, code: str, reason: str, *, pointer: str = "", document: str = "", position: str = "") -> None:
        """Keep the stable word, the sentence for people, and where in the payload (a JSON pointer)."""
        super().__init__(reason)
        self.code, self.reason, self.pointer = code, reason, pointer
        self.document, self.position = document, position


class TooLarge(InvalidEvent):
    """The event is over a declared limit: HTTP 413, or a dead letter."""


class BackendUnavailable(ShinsenError):
    """A store or a model server did not answer: retry with back-off, drop nothing."""


class ModelFailed(BackendUnavailable):
    """A model did not answer for some texts: retry; where it takes other texts meanwhile, these are a dead letter."""


class Backpressure(ShinsenError):
    """Queues are full: the publisher waits `retry_after` seconds and sends again."""

    def __init__(self, reason: str, retry_after: float) -> None:
        """Keep how long to wait."""
        super().__init__(reason)
        self.retry_after = retry_after


class InvalidConfiguration(ShinsenError):
    """A setting, mapping, pattern or ontology file is wrong: refuse to start. Text holds file and line."""


class InvalidQuery(ShinsenError):
    """The asker's input is wrong: HTTP 400 with `pointer`."""

    def __init__(self, reason: str, *, pointer: str = "") -> None:
        """Keep where in the request."""
        super().__init__(reason)
        self.reason, self.pointer = reason, pointer


class CursorExpired(ShinsenError):
    """The pages of a search cannot go on: HTTP 410; ask for the first page again."""


class NotFound(ShinsenError):
    """What is named is not there: HTTP 404; the text says what is."""


class NotPossible(ShinsenError):
    """What is asked for cannot be done as things stand: HTTP 409; the text says why, and what to do."""


class QueryTimeout(ShinsenError):
    """A query that a person or a model wrote ran past its limit and was killed."""


class NotFresh(ShinsenError):
    """`min_freshness` was not reached within `wait`: HTTP 504."""


class EventDead(ShinsenError):
    """The event behind a freshness token ended as a dead letter: HTTP 409."""
