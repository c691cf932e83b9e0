"""Data folders that cannot be used, or have lost a part: a clear word at the start, or mended."""

import shutil
from pathlib import Path

import pytest

from pipeline.embedded.data_folder import DataFolder, holder_of
from pipeline.errors import BackendUnavailable
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from schemas.change_event import RawEvent

EVENT = b'{"source":"s","collection":"c","key":"%d","op":"upsert","position":1,"record":{"title":"t","body":"Q-42"}}'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate({"data": tmp_path / "data", "analyzer": "stub", "embedder": "stub", "workers": 1})


async def digest_of(settings: Settings, *events: bytes) -> str:
    async with open_embedded(settings) as runtime:
        submitted = await runtime.submit([RawEvent(value=event) for event in events])
        await runtime.wait_outcomes([one.event for one in submitted], 20)
        return (await runtime.digest())["all"]


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BackendUnavailable, match="must be writable"), DataFolder(tmp_path / "file" / "data"):
        pass
    assert holder_of(tmp_path / "file") == {}


@pytest.mark.parametrize("lost", ["", "removed"])
async def test_indexes_without_their_state_are_refused(settings: Settings, lost: str) -> None:
    await digest_of(settings, EVENT % 1)
    state = settings.data / "state.db"
    if lost:
        state.unlink()
    else:
        state.write_bytes(b"")
    for _ in range(2):  # the lock is let go of
        with pytest.raises(BackendUnavailable, match=r"state\.db is missing or empty, but chunks-g1\.db, graph-g1"):
            await digest_of(settings)


async def test_damaged_indexes_say_what_to_remove_and_come_back(settings: Settings) -> None:
    whole = await digest_of(settings, EVENT % 1, EVENT % 2)
    for sst in (settings.data / "graph-g1" / "store").glob("*"):
        if sst.suffix in (".sst", ".log"):
            sst.write_bytes(b"damaged" * 100)
    with pytest.raises(BackendUnavailable, match=r"remove .*graph-g1 and start again"):
        await digest_of(settings)
    shutil.rmtree(settings.data / "graph-g1")
    for name in ("chunks-g1.db", "cache.db"):
        (settings.data / name).write_bytes(b"damaged" * 1000)
        with pytest.raises(BackendUnavailable, match=f"remove {name} and start again"):
            await digest_of(settings)
        (settings.data / name).unlink()
    assert await digest_of(settings) == whole
    (settings.data / "state.db").write_bytes(b"damaged" * 1000)
    with pytest.raises(BackendUnavailable, match="put it back from a backup"):
        await digest_of(settings)


async def test_an_older_state_under_newer_indexes_takes_them_back(settings: Settings) -> None:
    before = await digest_of(settings, EVENT % 1, EVENT % 2)
    kept = settings.data.parent / "backup.db"
    shutil.copy(settings.data / "state.db", kept)
    for number in (3, 4, 5):
        await digest_of(settings, EVENT % number)
    for rest in settings.data.glob("state.db*"):
        rest.unlink()
    shutil.copy(kept, settings.data / "state.db")
    assert await digest_of(settings) == before
