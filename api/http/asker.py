"""Who asks: the one dependency by which every reading endpoint learns the asker's groups."""

from typing import Any

from litestar import Request
from litestar.exceptions import HTTPException

from api.options import ApiOptions
from api.retrieval.access import Asker

GROUPS_HEADER = "x-shinsen-groups"


def asker_of(request: Request[Any, Any, Any], options: ApiOptions) -> Asker:
    """Return the asker: by the header on a loopback start, else the groups that the settings give to anyone.

    Off loopback the header is refused rather than ignored: who sent it meant to be limited by it.
    """
    given = request.headers.get(GROUPS_HEADER)
    if given is None:
        return Asker(frozenset(options.anonymous_groups))
    if not options.loopback:
        raise HTTPException(status_code=403, detail="X-Shinsen-Groups is only taken on a loopback start.")
    return Asker(frozenset(group.strip() for group in _text(given).split(",") if group.strip()))


def _text(given: str) -> str:
    """Read the header as UTF-8, as curl and most clients send it; the framework took each byte for a character."""
    try:
        return given.encode("latin-1").decode("utf-8")
    except UnicodeError as error:
        raise HTTPException(status_code=400, detail="X-Shinsen-Groups is not UTF-8.") from error


def operator_only(asker: Asker) -> None:
    """Refuse askers who may not see everything: dead letters and digests hold what no ACL was read from yet."""
    if not asker.sees_all:
        raise HTTPException(status_code=403, detail="This needs the group * (an operator).")
