"""Who may read a document or a fact."""

import hashlib

import msgspec

EVERYTHING = "*"
"""A principal's group that sees all."""
PUBLIC = "public"
"""The group that every principal is in; what a record without an ACL gets by default."""


class AccessRule(msgspec.Struct, frozen=True):
    """Allowed when the principal has a group of every clause of `allow` and none of `deny`.

    A document has one clause; a fact from a restricted column has two (the document's and the
    column's), which is why this is a conjunction and not one set of groups.
    """

    allow: tuple[tuple[str, ...], ...] = ((PUBLIC,),)
    deny: tuple[str, ...] = ()

    def permits(self, groups: frozenset[str]) -> bool:
        """Say whether a principal with these groups may read."""
        if EVERYTHING in groups:
            return True
        mine = groups | {PUBLIC}
        return all(mine.intersection(clause) for clause in self.allow) and mine.isdisjoint(self.deny)

    def met(self, other: "AccessRule") -> "AccessRule":
        """Return the rule that asks for both."""
        clauses = {tuple(sorted(set(c))) for c in (*self.allow, *other.allow)}
        return AccessRule(tuple(sorted(clauses)), tuple(sorted({*self.deny, *other.deny})))

    def access_class(self) -> str:
        """Return the id of this rule's access class: 16 hex digits, equal for equal rules."""
        plain = self.met(AccessRule((), ()))
        return hashlib.sha256(msgspec.json.encode([plain.allow, plain.deny])).hexdigest()[:16]


def access_rule(allow: list[str] | tuple[str, ...], deny: list[str] | tuple[str, ...] = ()) -> AccessRule:
    """Build the rule of one list of groups; a group written `!group` is denied."""
    allowed = tuple(sorted({g for g in allow if not g.startswith("!")}))
    denied = tuple(sorted({g[1:] for g in allow if g.startswith("!")} | set(deny)))
    return AccessRule((allowed,), denied)
