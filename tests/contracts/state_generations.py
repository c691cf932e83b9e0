"""What every State must do with offsets, access classes and generations."""

import asyncio

import msgspec
import pytest

from pipeline.ports.generations import Behind, Rebuild, ReplayPlan, Standing
from pipeline.ports.publishing import Finish
from pipeline.ports.state import DeclaredName, Generation, State
from schemas.access import access_rule
from tests.contracts.examples import DOCUMENT, at, manifest, record


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
            await state.collected(name, [(DOCUMENT, at(1))], 1)
            assert await state.uncollect(name, {"chunks": [manifest()]}) == {"chunks": [DOCUMENT]}
            await state.finish(name, [Finish(manifest(), unrefined=True)], 1, writer="w1", stale="")
        await state.promote("g2")
        await state.drop_generation("g1")
        await state.drop_generation("g1")
        assert [g.name for g in await state.generations()] == ["g2"]
        assert await state.manifests("g1", [DOCUMENT]) == {}
        assert await state.declared_names("g1") == []
        assert (await state.counts("g1"))["relinks"] == 0
        assert "repaired.chunks" not in await state.counts("g1")
        assert (await state.unrefined("g1"), await state.unrefined("g2")) == ([], [DOCUMENT])
        assert len(await state.declared_names("g2")) == 1
        assert len(await state.manifests("g2", [DOCUMENT])) == 1

    async def test_the_live_generation_cannot_be_dropped(self, state: State) -> None:
        await state.create_generation(generation("g1"))
        await state.promote("g1")
        with pytest.raises(ValueError, match="live"):
            await state.drop_generation("g1")
        assert [g.name for g in await state.generations()] == ["g1"]

    async def test_a_name_is_never_given_twice(self, state: State) -> None:
        assert await state.next_generation() == "g1"
        for name in ("g1", "g2", "other"):
            await state.create_generation(generation(name))
        await state.promote("g1")
        await state.drop_generation("g2")
        assert await state.next_generation() == "g3"

    async def test_promotions_are_remembered_newest_first(self, state: State) -> None:
        for name in ("g1", "g2"):
            await state.create_generation(generation(name))
        for name, time in (("g1", "T1"), ("g2", "T2"), ("g2", "T3"), ("g1", "T4")):
            assert await state.promote(name, time) == []
        assert [(p.generation, p.at) for p in await state.promotions()] == [("g1", "T4"), ("g2", "T2"), ("g1", "T1")]

    async def test_one_that_is_older_is_not_promoted_unless_wanted(self, state: State) -> None:
        for name in ("g1", "g2"):
            await state.create_generation(generation(name))
        await state.promote("g1", unless_older=True)
        await state.commit("g1", [manifest(ordinal=2), manifest(document="a/b/2", ordinal=1)])
        await state.commit("g2", [manifest(ordinal=1)])
        assert await state.promote("g2", unless_older=True) == sorted([DOCUMENT, "a/b/2"])
        assert [g.state for g in await state.generations()] == ["live", "building"]
        await state.commit("g2", [manifest(ordinal=3), manifest(document="a/b/2", ordinal=1)])
        assert await state.promote("g2", unless_older=True) == []
        assert await state.promote("g1") == []
        assert [g.state for g in await state.generations()] == ["live", "retired"]

    async def test_one_on_its_way_out_is_no_generation_to_promote(self, state: State) -> None:
        for name in ("g1", "g2"):
            await state.create_generation(generation(name))
        await state.promote("g1")
        await state.begin_prune("g2")
        await state.begin_prune("missing")
        with pytest.raises(KeyError):
            await state.promote("g2")
        with pytest.raises(ValueError, match="live"):
            await state.begin_prune("g1")
        assert [g.state for g in await state.generations()] == ["live", "pruning"]

    async def test_a_rebuild_is_noted_and_goes_with_its_generation(self, state: State) -> None:
        plan = ReplayPlan(into="new", start="records:0:5", collections=("erp/機器",))
        noted = Rebuild(plan=plan, targets={"records:0": 9})
        await state.save_rebuild("g1", noted)
        assert await state.rebuild("g1") is None
        await state.create_generation(generation("g1"))
        for phase in ("reading", "complete"):
            await state.save_rebuild("g1", msgspec.structs.replace(noted, phase=phase, filled=3))
        assert await state.rebuild("g1") == msgspec.structs.replace(noted, phase="complete", filled=3)
        await state.create_generation(generation("g1"), Rebuild(plan=plan))
        assert (await state.rebuild("g1")) == msgspec.structs.replace(noted, phase="complete", filled=3)
        await state.drop_generation("g1")
        await state.create_generation(generation("g1"))
        assert await state.rebuild("g1") is None
        await state.create_generation(generation("g2"), noted)
        assert await state.rebuild("g2") == noted
        await state.begin_prune("g2")
        await state.save_rebuild("g2", noted)
        assert await state.rebuild("g2") is None

    async def test_versions_can_be_changed(self, state: State) -> None:
        await state.create_generation(generation("g1"))
        assert (await state.embedder("g1"), await state.embedder("missing")) == ("e5", None)
        await state.set_versions("g1", {"embedder": "e6"})
        assert await state.embedder("g1") == "e6"
        await state.set_versions("missing", {})
        assert [g.versions for g in await state.generations()] == [{"embedder": "e6"}]

    async def test_what_a_generation_lacks_is_counted_and_listed(self, state: State) -> None:
        await state.create_generation(generation("g1"))
        keys = ["a/b/1", "a/b/2", "a/b/3", "a/b2/1", "z/z/1"]
        await state.advance([record(document=key, ordinal=2) for key in keys])
        await state.commit("g1", [manifest(document="a/b/1", ordinal=2), manifest(document="a/b/2", ordinal=1)])
        await state.commit("g1", [manifest(document="a/b/3", ordinal=2), manifest(document="a/b2/1", ordinal=2)])
        await state.collected("g1", [("a/b/1", at(2)), ("a/b/2", at(1)), ("a/b2/1", at(2))], 1)
        await state.mark_relinks("g1", ["a/b/1"])
        lacking = [Behind(key, at(2)) for key in ("a/b/2", "a/b/3", "z/z/1")]
        assert await state.behind("g1") == lacking
        assert await state.behind("g1", prefix="a/b/") == lacking[:2]
        assert await state.behind("g1", after="a/b/2", limit=1) == lacking[1:2]
        assert await state.standing("g1") == Standing(records=5, behind=3, relinks=1)
        assert await state.standing("missing") == Standing(records=5, behind=5, relinks=0)
