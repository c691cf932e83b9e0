"""What every State must do with offsets, access classes and generations."""

import asyncio

import pytest

from pipeline.ports.state import DeclaredName, Generation, State
from schemas.access import access_rule
from tests.contracts.examples import DOCUMENT, manifest


def generation(name: str, created: str = "2025-07-08T00:00:00.000000Z") -> Generation:
    return Generation(name=name, created_at=created, versions={"embedder": "e5", "辞書": "1"})


class GenerationsContract:
    """Subclasses give the fixture `state`."""

    async def test_an_offset_is_only_raised(self, state: State) -> None:
        assert await state.offset("intake") == 0
        for offset in (5, 3, 5, 2**40):
            await state.commit_offset("intake", offset)
        assert await state.offset("intake") == 2**40
        assert await state.offset("other") == 0

    async def test_access_classes_are_kept_once(self, state: State) -> None:
        public, secret = access_rule(["public"]), access_rule(["保全課", "!外部"])
        await state.remember_classes([public, secret])
        await state.remember_classes([secret])
        await state.remember_classes([])
        assert await state.access_classes() == {rule.access_class(): rule for rule in (public, secret)}

    async def test_generations_are_built_then_live_then_retired(self, state: State) -> None:
        await state.create_generation(generation("g1", "2025-01-01"))
        await state.create_generation(generation("g2", "2025-01-02"))
        await state.promote("g1")
        assert [(g.name, g.state) for g in await state.generations()] == [("g1", "live"), ("g2", "building")]
        await state.promote("g2")
        await state.promote("g2")
        assert [(g.name, g.state) for g in await state.generations()] == [("g1", "retired"), ("g2", "live")]
        assert (await state.generations())[0].versions == {"embedder": "e5", "辞書": "1"}

    async def test_the_oldest_generation_comes_first(self, state: State) -> None:
        for name, created in (("a", "2025-03"), ("b", "2025-01"), ("c", "2025-02")):
            await state.create_generation(generation(name, created))
        assert [g.name for g in await state.generations()] == ["b", "c", "a"]

    async def test_creating_again_changes_nothing(self, state: State) -> None:
        await state.create_generation(generation("g1"))
        await state.promote("g1")
        await state.create_generation(generation("g1", "2026-01-01"))
        (only,) = await state.generations()
        assert (only.state, only.created_at) == ("live", "2025-07-08T00:00:00.000000Z")

    async def test_an_unknown_generation_cannot_be_promoted(self, state: State) -> None:
        await state.create_generation(generation("g1"))
        await state.promote("g1")
        with pytest.raises(KeyError):
            await state.promote("g9")
        assert [g.state for g in await state.generations()] == ["live"]

    async def test_promoters_at_once_leave_one_live(self, state: State) -> None:
        names = [f"g{n}" for n in range(6)]
        for name in names:
            await state.create_generation(generation(name))
        await asyncio.gather(*(state.promote(name) for name in names))
        assert sorted(g.state for g in await state.generations()) == ["live"] + ["retired"] * 5

    async def test_dropping_forgets_all_of_a_generation(self, state: State) -> None:
        for name in ("g1", "g2"):
            await state.create_generation(generation(name))
            await state.commit(name, [manifest()])
            await state.replace_names(name, {DOCUMENT: [DeclaredName("名", "id", "1")]})
            await state.mark_relinks(name, [DOCUMENT])
        await state.promote("g2")
        await state.drop_generation("g1")
        await state.drop_generation("g1")
        assert [g.name for g in await state.generations()] == ["g2"]
        assert await state.manifests("g1", [DOCUMENT]) == {}
        assert await state.declared_names("g1") == []
        assert (await state.counts("g1"))["relinks"] == 0
        assert len(await state.declared_names("g2")) == 1
        assert len(await state.manifests("g2", [DOCUMENT])) == 1

    async def test_the_live_generation_cannot_be_dropped(self, state: State) -> None:
        await state.create_generation(generation("g1"))
        await state.promote("g1")
        with pytest.raises(ValueError, match="live"):
            await state.drop_generation("g1")
        assert [g.name for g in await state.generations()] == ["g1"]
