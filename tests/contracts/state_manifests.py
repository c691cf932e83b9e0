"""What every State must do with manifests, pending work and relinking marks."""

import asyncio

import msgspec

from pipeline.ports.state import Pending, State
from schemas.access import access_rule
from tests.contracts.examples import DOCUMENT, GENERATION, at, letter, manifest, outcome, record


async def applied(state: State, document: str = DOCUMENT, ordinal: int = 1) -> None:
    """Bring a document all the way to applied at a position."""
    await state.advance([record(document, ordinal, f"{document}:{ordinal}")])
    await state.commit(GENERATION, [manifest(document, ordinal)])
    await state.announce([outcome(f"{document}:{ordinal}", "applied", document, ordinal)])
    await state.collected(GENERATION, [(document, at(ordinal))], 1)


class ManifestsContract:
    """Subclasses give the fixture `state`."""

    # ------------------------------------------------------------ commit

    async def test_commits_and_returns_manifests(self, state: State) -> None:
        whole = msgspec.structs.replace(
            manifest(),
            access=access_rule(["保全課"], ["外部"]),
            fields={"台数": 3},
            restricted_fields={"台数": access_rule(["a"])},
        )
        assert await state.commit(GENERATION, [whole]) == [True]
        assert await state.manifests(GENERATION, [DOCUMENT, "x/y/z"]) == {DOCUMENT: whole}
        assert await state.manifests("g2", [DOCUMENT]) == {}
        assert await state.manifests(GENERATION, []) == {}

    async def test_commits_by_compare_and_set_on_the_position(self, state: State) -> None:
        assert await state.commit(GENERATION, [manifest(ordinal=5), manifest(ordinal=4)]) == [True, False]
        assert await state.commit(GENERATION, [manifest(ordinal=5)]) == [True]
        assert await state.commit(GENERATION, [manifest(ordinal=6, op="delete"), manifest(ordinal=5)]) == [True, False]
        assert (await state.manifests(GENERATION, [DOCUMENT]))[DOCUMENT].op == "delete"

    async def test_one_refused_manifest_does_not_keep_the_others_back(self, state: State) -> None:
        await state.commit(GENERATION, [manifest("a/b/1", 9)])
        assert await state.commit(GENERATION, [manifest("a/b/1", 1), manifest("a/b/2", 1)]) == [False, True]

    async def test_a_text_stage_never_replaces_a_full_one(self, state: State) -> None:
        await state.commit(GENERATION, [manifest(ordinal=1, stage="full")])
        assert await state.commit(GENERATION, [manifest(ordinal=1, stage="text")]) == [False]
        assert await state.commit(GENERATION, [manifest(ordinal=2, stage="text")]) == [False]
        assert (await state.manifests(GENERATION, [DOCUMENT]))[DOCUMENT] == manifest(ordinal=1)

    async def test_a_text_stage_may_follow_a_text_stage_and_becomes_full(self, state: State) -> None:
        offered = [manifest(ordinal=n, stage=s) for n, s in ((1, "text"), (2, "text"), (2, "full"))]  # type: ignore[arg-type]
        assert await state.commit(GENERATION, offered) == [True, True, True]

    async def test_two_generations_are_apart(self, state: State) -> None:
        await state.commit("g1", [manifest(ordinal=5)])
        assert await state.commit("g2", [manifest(ordinal=1)]) == [True]
        assert (await state.manifests("g1", [DOCUMENT]))[DOCUMENT].position == at(5)

    async def test_committers_at_once_leave_the_greatest_position(self, state: State) -> None:
        done = await asyncio.gather(*(state.commit(GENERATION, [manifest(ordinal=n)]) for n in (3, 1, 7, 5, 2, 6)))
        assert done[2] == [True]
        assert (await state.manifests(GENERATION, [DOCUMENT]))[DOCUMENT].position == at(7)

    # ------------------------------------------------------------ collected and settled

    async def test_settled_is_committed_collected_and_full(self, state: State) -> None:
        await state.commit(GENERATION, [manifest("a/b/1"), manifest("a/b/2", stage="text"), manifest("a/b/3")])
        asked = ["a/b/1", "a/b/2", "a/b/3", "a/b/4"]
        assert await state.settled(GENERATION, asked) == {}
        await state.collected(GENERATION, [("a/b/1", at(1)), ("a/b/2", at(1))], 1)
        assert await state.settled(GENERATION, asked) == {"a/b/1": at(1)}
        assert await state.settled("g2", asked) == {}

    async def test_collecting_another_position_is_left_alone(self, state: State) -> None:
        await state.commit(GENERATION, [manifest(ordinal=2)])
        await state.collected(GENERATION, [(DOCUMENT, at(1)), ("x/y/z", at(1))], 9)
        assert await state.settled(GENERATION, [DOCUMENT]) == {}
        assert await state.revision(GENERATION) == 0

    async def test_a_commit_makes_it_uncollected_again(self, state: State) -> None:
        await applied(state)
        await state.commit(GENERATION, [manifest()])
        assert await state.settled(GENERATION, [DOCUMENT]) == {}
        assert [p.document for p in await state.pending(GENERATION)] == [DOCUMENT]

    async def test_stages_of_applied_versions(self, state: State) -> None:
        await state.commit(GENERATION, [manifest("a/b/1"), manifest("a/b/2", stage="text")])
        await state.advance([record("a/b/3")])
        assert await state.stages(GENERATION, ["a/b/1", "a/b/2", "a/b/3"]) == {"a/b/1": "full", "a/b/2": "text"}

    async def test_revision_is_the_highest_collected(self, state: State) -> None:
        assert await state.revision(GENERATION) == 0
        for n, revision in ((1, 4), (2, 7), (3, 5)):
            await state.commit(GENERATION, [manifest(f"a/b/{n}")])
            await state.collected(GENERATION, [(f"a/b/{n}", at(1))], revision)
        assert (await state.revision(GENERATION), await state.revision("g2")) == (7, 0)

    async def test_uncollects_what_came_after_a_revision(self, state: State) -> None:
        for n in (1, 2, 3):
            await applied(state, f"a/b/{n}")
            await state.collected(GENERATION, [(f"a/b/{n}", at(1))], n)
        assert await state.uncollect_after(GENERATION, 1) == 2
        assert await state.uncollect_after(GENERATION, 1) == 0
        assert [p.document for p in await state.pending(GENERATION)] == ["a/b/2", "a/b/3"]
        assert await state.revision(GENERATION) == 3

    async def test_pages_of_collected_manifests(self, state: State) -> None:
        keys = sorted((f"e/a/{k}" for k in "aZ亜ア𠮷ｱ19"), key=lambda k: k.encode())
        for key in reversed(keys):
            await applied(state, key)
        await state.commit(GENERATION, [manifest(keys[1])])
        await state.commit("g2", [manifest("e/a/other")])
        first = await state.collected_manifests(GENERATION, limit=3)
        rest = await state.collected_manifests(GENERATION, after=first[-1].document)
        assert [m.document for m in (*first, *rest)] == [keys[0], *keys[2:]]
        assert first[0] == manifest(keys[0])
        assert await state.collected_manifests("g2") == []

    async def test_uncollects_what_an_index_does_not_hold_and_counts_it(self, state: State) -> None:
        for n in (1, 2, 3):
            await applied(state, f"a/b/{n}")
        one, two = manifest("a/b/1"), manifest("a/b/2")
        assert await state.uncollect(GENERATION, {"chunks": [two, one], "graph": [one]}) == {
            "chunks": ["a/b/1", "a/b/2"],
            "graph": ["a/b/1"],
        }
        assert [p.document for p in await state.pending(GENERATION)] == ["a/b/1", "a/b/2"]
        assert await state.unfinished(GENERATION, ["a/b/1", "a/b/3"], announces=True) == {"a/b/1"}
        assert await state.leftovers(GENERATION, older_s=60, announces=True) == ["a/b/1", "a/b/2"]
        assert await state.uncollect(GENERATION, {"chunks": [one]}) == {}, "it is to be published already"
        await state.collected(GENERATION, [("a/b/1", at(1))], 2)
        assert await state.uncollect(GENERATION, {"chunks": [one], "graph": []}) == {"chunks": ["a/b/1"]}
        counts = await state.counts(GENERATION)
        assert (counts["repaired.chunks"], counts["repaired.graph"], counts["uncollected"]) == (3, 1, 2)
        assert not [name for name in await state.counts("g2") if name.startswith("repaired")]

    async def test_uncollects_only_what_stands_as_it_was_compared(self, state: State) -> None:
        await applied(state, "a/b/1", 2)
        await applied(state, "a/b/2")
        linked = msgspec.structs.replace(manifest("a/b/2"), facts_version="other")
        given = [manifest("a/b/1", 1), linked, manifest("a/b/4")]
        assert await state.uncollect(GENERATION, {"chunks": given}) == {}
        await state.begin(GENERATION, ["a/b/2"], "w1", 0)
        assert await state.uncollect(GENERATION, {"chunks": [manifest("a/b/2")]}) == {}, "who publishes it mends it"
        assert await state.uncollect("g2", {"chunks": [manifest("a/b/1", 2)]}) == {}
        assert await state.uncollect(GENERATION, {}) == {}
        assert not [name for name in await state.counts(GENERATION) if name.startswith("repaired")]

    async def test_scans_manifests_in_byte_order(self, state: State) -> None:
        keys = ["e/a/ア", "e/a/a", "e/a/Z", "e/a/亜", "e/a/𠮷", "e/a/ｱ"] + [f"f/a/{n:04d}" for n in range(700)]
        await state.commit(GENERATION, [manifest(key) for key in keys])
        await state.commit("g2", [manifest("e/a/other")])
        assert [m.document async for m in state.scan_manifests(GENERATION)] == sorted(keys, key=lambda k: k.encode())

    # ------------------------------------------------------------ pending

    async def test_what_is_applied_is_not_pending(self, state: State) -> None:
        await applied(state)
        assert await state.pending(GENERATION) == []

    async def test_a_record_without_manifest_is_pending_and_fresh(self, state: State) -> None:
        await state.advance([record()])
        assert await state.pending(GENERATION) == [Pending(DOCUMENT, at(1), True, "")]

    async def test_a_newer_record_is_pending(self, state: State) -> None:
        await applied(state)
        await state.advance([record(ordinal=2)])
        assert await state.pending(GENERATION) == [Pending(DOCUMENT, at(2), False, "full")]

    async def test_a_text_stage_is_pending(self, state: State) -> None:
        await state.advance([record()])
        await state.commit(GENERATION, [manifest(stage="text")])
        await state.collected(GENERATION, [(DOCUMENT, at(1))], 1)
        assert await state.pending(GENERATION) == [Pending(DOCUMENT, at(1), False, "text")]

    async def test_what_is_not_collected_is_pending(self, state: State) -> None:
        await state.advance([record()])
        await state.commit(GENERATION, [manifest()])
        assert [p.document for p in await state.pending(GENERATION)] == [DOCUMENT]

    async def test_what_is_not_announced_is_pending(self, state: State) -> None:
        await applied(state)
        await state.advance([record(DOCUMENT, 2, "log:2")])
        await state.commit(GENERATION, [manifest(ordinal=2)])
        await state.collected(GENERATION, [(DOCUMENT, at(2))], 1)
        assert [p.document for p in await state.pending(GENERATION)] == [DOCUMENT]
        await state.announce([outcome("log:2", "applied", ordinal=2)])
        assert await state.pending(GENERATION) == []

    async def test_a_relinking_mark_is_pending(self, state: State) -> None:
        await applied(state)
        await state.mark_relinks(GENERATION, [DOCUMENT])
        await state.mark_relinks(GENERATION, [DOCUMENT])
        assert [p.document for p in await state.pending(GENERATION)] == [DOCUMENT]
        assert (await state.counts(GENERATION))["relinks"] == 1
        await state.clear_relinks(GENERATION, [DOCUMENT, "x/y/z"])
        assert await state.pending(GENERATION) == []

    async def test_a_buried_version_is_pending_until_it_is_withdrawn(self, state: State) -> None:
        await applied(state)
        await state.advance([record(DOCUMENT, 2, "log:2")])
        await state.bury([letter(ordinal=2, event="log:2")])
        assert [p.document for p in await state.pending(GENERATION)] == [DOCUMENT]
        await state.commit(GENERATION, [msgspec.structs.replace(manifest(ordinal=2, op="delete"), position=at(2))])
        await state.collected(GENERATION, [(DOCUMENT, at(2))], 1)
        assert await state.pending(GENERATION) == []

    async def test_pending_pages_in_key_order(self, state: State) -> None:
        keys = sorted((f"e/a/{k}" for k in "aZ亜ア𠮷ｱ19"), key=lambda k: k.encode())
        await state.advance([record(key) for key in reversed(keys)])
        first = [p.document for p in await state.pending(GENERATION, limit=3)]
        rest = [p.document for p in await state.pending(GENERATION, after=first[-1])]
        assert first + rest == keys

    async def test_each_generation_has_its_own_pending(self, state: State) -> None:
        await applied(state)
        assert await state.pending("g2") == [Pending(DOCUMENT, at(1), True, "")]

    # ------------------------------------------------------------ counts

    async def test_counts(self, state: State) -> None:
        await applied(state, "a/b/1")
        await state.commit(GENERATION, [manifest("a/b/2", stage="text"), manifest("a/b/3", op="delete")])
        await state.advance([record("a/b/2", 1, "log:9"), record("a/b/3", 1, op="delete")])
        await state.announce([outcome("e1", "duplicate"), outcome("e2", "superseded"), outcome("e3", "superseded")])
        await state.bury([letter("l1", "e4"), letter("l2", "e5")])
        await state.resolve(["l2"])
        assert await state.counts(GENERATION) == {
            "records": 3,
            "documents": 2,
            "text": 1,
            "full": 1,
            "uncollected": 2,
            "relinks": 0,
            "unrefined": 0,
            "dead_letters": 1,
            "outcome.applied": 1,
            "outcome.duplicate": 1,
            "outcome.superseded": 2,
            "outcome.dead_letter": 2,
        }
