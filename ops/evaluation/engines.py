"""The seam for engines outside the product: baselines that rank the same passages for the same questions.

A configuration names a factory, `package.module:factory`:

```python
@asynccontextmanager
async def factory(golden: GoldenSet, options: Mapping[str, Any], place: Place) -> AsyncIterator[Ranker]:
    index = build(golden.passages, **options)     # before the first question: is not timed
    yield index                                   # has `async def rank(question) -> list of document keys`
```
`place.key(passage.id)` is a passage's document key. Options that the factory does not know are its errors to raise.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any, cast

from ops.evaluation.configurations import Configuration
from ops.evaluation.formats import Place
from ops.evaluation.golden import GoldenSet
from ops.evaluation.ranking import Ranker
from pipeline.errors import InvalidConfiguration

Factory = Callable[[GoldenSet, dict[str, Any], Place], AbstractAsyncContextManager[Ranker]]


def engine(configuration: Configuration, golden: GoldenSet, place: Place) -> AbstractAsyncContextManager[Ranker]:
    """Return what opens a configuration's engine. Raises InvalidConfiguration: no such factory, no corpus."""
    if not golden.passages:
        raise InvalidConfiguration(
            f"{configuration.name}: an engine ranks the set's own passages, and none comes with this set (--corpus)"
        )
    module, colon, name = configuration.engine.partition(":")
    try:
        factory = getattr(import_module(module), name) if colon else None
    except (ImportError, AttributeError) as error:
        raise InvalidConfiguration(f"{configuration.name}: engine {configuration.engine!r}: {error}") from error
    if not callable(factory):
        raise InvalidConfiguration(
            f"{configuration.name}: engine {configuration.engine!r} names no factory: write package.module:factory"
        )
    return cast(Factory, factory)(golden, dict(configuration.options), place)
