"""Relation patterns: data that say which sentences state which facts."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

import schemas
from pipeline.mapping.check import is_local_name
from pipeline.mapping.yaml_file import YamlFile, read_yaml
from pipeline.text.slow_patterns import TOO_SLOW, explodes

PRODUCT_FILE = Path(schemas.__file__).parent / "patterns" / "relations.yaml"
IDENTIFIER_MASKS, NAME_MASKS = "\ue000-\uefff", "\uf000-\uf8ff"
"""In the text that patterns see, one character of these private ranges stands for a known entity."""

_RUN = "ァ-ヺー一-鿿々"
_NOT_KINDS = (
    *("センター", "センタ", "エリア", "ライン", "フロア", "ヤード", "サイト", "コース"),
    *("グループ", "チーム", "メーカー", "シリーズ", "モデル", "リーダー", "マネージャー"),
)
"""Katakana ends of places, groups and roles, which stand before a number too."""
_KIND_END = (
    "(?:[ァ-ヺー]{3}"
    + "".join(f"(?<!{end})" for end in _NOT_KINDS)
    + "|[車機器炉盤弁書票材具船剤錠]|装置|設備|部品|製品)"
)
_MACROS = {
    "{id}": f"[{IDENTIFIER_MASKS}]",
    "{known}": f"[{IDENTIFIER_MASKS}{NAME_MASKS}]",
    "{noun}": f"(?<![{_RUN}])[{_RUN}]{{2,20}}(?![{_RUN}])",
    "{kind}": f"(?<![{_RUN}])(?=[{_RUN}]{{2,20}}(?![{_RUN}]))[{_RUN}]*{_KIND_END}(?![{_RUN}])",
}
_SLOW_S = 0.1
_PROBE_LENGTHS = (12, 16, 20, 24, 400)
_PROBES = ("a", "1-", "ア", "漢", "あ", "本書は、", "ア、", "漢の", "\ue000", "\ue000は")


class RelationPattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of `facts` in a patterns file; see schemas/patterns/relations.yaml."""

    predicate: str
    pattern: str
    name: str = ""
    subject_type: str | None = None
    object_type: str | None = None
    confidence: float = 0.8


class PatternsFile(msgspec.Struct, frozen=True):
    """What is read here of a patterns file; `identifiers` are read by pipeline.text.patterns."""

    facts: tuple[RelationPattern, ...] = ()


class Relation(msgspec.Struct, frozen=True):
    """A compiled pattern."""

    spec: RelationPattern
    compiled: re.Pattern[str]


class Relations:
    """Compiled patterns in the order of their files, the product's first."""

    def __init__(self, specs: Sequence[RelationPattern]) -> None:
        """Compile; raises `re.error` on a bad pattern (`load_relations` checks files with file and line)."""
        self.all = tuple(Relation(spec, compile_relation(spec.pattern)) for spec in specs)

    @property
    def version(self) -> str:
        """Eight hex digits that change with any pattern."""
        return hashlib.sha256(msgspec.json.encode([r.spec for r in self.all])).hexdigest()[:8]


def load_relations(paths: Iterable[Path | str] = ()) -> Relations:
    """Read the product's patterns and those of more files. Raises InvalidConfiguration with file, line and reason."""
    specs: list[RelationPattern] = []
    for path in (PRODUCT_FILE, *map(Path, paths)):
        file = read_yaml(path)
        for number, spec in enumerate(file.convert(PatternsFile).facts):
            _check(file, number, spec)
            specs.append(spec)
    return Relations(specs)


def compile_relation(pattern: str) -> re.Pattern[str]:
    """Compile a pattern with its macros. Raises `re.error`."""
    for macro, meaning in _MACROS.items():
        pattern = pattern.replace(macro, f"(?:{meaning})")
    return re.compile(pattern, re.IGNORECASE)


def _check(file: YamlFile, number: int, spec: RelationPattern) -> None:
    if reason := _reason(spec):
        raise file.refusal(("facts", number), reason)


def _reason(spec: RelationPattern) -> str:
    for name in (spec.predicate, spec.subject_type, spec.object_type):
        if name is not None and not is_local_name(name):
            return f"{name!r} must be a local name: a letter, then letters, digits, '_' or '-'"
    if not 0 < spec.confidence <= 1:
        return "'confidence' lies between 0 and 1"
    try:
        compiled = compile_relation(spec.pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"the pattern cannot be compiled: {error}"
    if "object" not in compiled.groupindex or not compiled.groupindex.keys() <= {"subject", "object"}:
        return "the pattern needs a group (?P<object>...), and has no other named group but 'subject'"
    if compiled.match(""):
        return "the pattern matches the empty text"
    texts = (piece * (length // len(piece)) + "!" for length in _PROBE_LENGTHS for piece in _PROBES)
    return f"the pattern {TOO_SLOW}" if explodes(compiled, texts, _SLOW_S) else ""
