"""What is measured right after loading is measured with all that belongs to the passages."""

from pathlib import Path

from ops.connection import connect_here
from ops.evaluation.formats import Place
from ops.evaluation.golden import Passage
from ops.evaluation.loading import load, unrefined
from pipeline.settings import Settings

PLACE = Place("eval", "passages")


async def test_loading_ends_when_sentences_have_vectors_too(tmp_path: Path) -> None:
    passages = [Passage(id=str(n), title="", text=f"軸受を見た。{n}号機の圧力を測った。") for n in range(5)]
    settings = Settings(data=tmp_path, analyzer="stub", embedder="stub", sentence_vectors=True, stub_delay=0.1)
    async with connect_here(settings) as connection:
        said = await load(connection, passages, PLACE, "2025-07-08T00:00:00Z", 60)
        assert "lack" not in said and await unrefined(connection) == ""
    async with connect_here(settings.model_copy(update={"sentence_vectors": False})) as connection:
        changed = [Passage(id="1", title="", text="軸受を見た。異音がした。")]
        await load(connection, changed, PLACE, "2025-07-08T00:00:01Z", 60)
        assert await unrefined(connection) == "", "nobody wants them"
