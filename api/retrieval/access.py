"""Who asks, and what they may read."""

import msgspec

from pipeline.ports.state import State
from schemas.access import EVERYTHING, AccessRule
from schemas.document import Manifest


class Asker(msgspec.Struct, frozen=True):
    """The principal of one request."""

    groups: frozenset[str]

    @property
    def sees_all(self) -> bool:
        """Say whether nothing is hidden: the operator's view."""
        return EVERYTHING in self.groups

    def permits(self, rule: AccessRule) -> bool:
        """Say whether this rule lets the asker read."""
        return rule.permits(self.groups)

    def may_read(self, manifest: Manifest | None) -> bool:
        """Say whether there is a document here that this asker may know of."""
        return manifest is not None and manifest.op == "upsert" and self.permits(manifest.access)

    def may_use_field(self, manifest: Manifest, field: str) -> bool:
        """Say whether this field may be shown, filtered by, or counted."""
        rule = manifest.restricted_fields.get(field)
        return rule is None or self.permits(rule)

    def visible_fields(self, manifest: Manifest) -> dict[str, object]:
        """Return the fields this asker may see."""
        return {name: value for name, value in manifest.fields.items() if self.may_use_field(manifest, name)}


async def permitted_classes(state: State, asker: Asker) -> tuple[str, ...] | None:
    """Return the access classes this asker may read; None when all."""
    if asker.sees_all:
        return None
    classes = await state.access_classes()
    return tuple(sorted(name for name, rule in classes.items() if asker.permits(rule)))
