"""What every State must do for those who publish: marks, commits with names, ends."""

import asyncio
import datetime

import msgspec

from pipeline.ports.publishing import DeclaredName, Finish
from pipeline.ports.state import State
from tests.contracts.examples import DOCUMENT, GENERATION, at, letter, manifest, outcome, record

LEASE, OVER = 60.0, -60.0
"""Ages of a mark: above that of every mark here, and below it."""
PAST, FUTURE = "2000-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"
F17 = DeclaredName("フォークリフト", "id", "f-17")
F18 = DeclaredName("フォークリフト", "id", "f-18")
OTHER = DeclaredName("カウンター", "id", "k-08")


async def finished(state: State, document: str = DOCUMENT, ordinal: int = 1) -> None:
    """Publish a document whole, its event announced."""
    event = f"{document}:{ordinal}"
    await state.advance([record(document, ordinal, event)])
    await state.begin(GENERATION, [document], "w1", 0)
    one = manifest(document, ordinal)
    await state.commit_declared(GENERATION, [one], {}, 0)
    done = Finish(one, (outcome(event, "applied", document, ordinal),))
    assert await state.finish(GENERATION, [done], 1, writer="w1", stale="") == [True]


class PublishingContract:
    """Subclasses give the fixture `state`."""

    async def test_published_in_three_steps_is_settled_and_announced(self, state: State) -> None:
        await finished(state)
        assert await state.settled(GENERATION, [DOCUMENT]) == {DOCUMENT: at(1)}
        assert await state.outcomes([f"{DOCUMENT}:1"]) == {f"{DOCUMENT}:1": "applied"}
        assert await state.pending(GENERATION) == []
        assert await state.leftovers(GENERATION, older_s=OVER, announces=True) == []
        assert await state.revision(GENERATION) == 1

    async def test_begin_returns_what_stands(self, state: State) -> None:
        assert (await state.begin(GENERATION, [DOCUMENT], "w1", 0)).standing == {}
        await state.commit(GENERATION, [manifest()])
        begun = await state.begin(GENERATION, [DOCUMENT, DOCUMENT, "x/y/z"], "w1", 0)
        assert begun.standing == {DOCUMENT: manifest()}

    async def test_a_mark_is_pending_until_its_writer_finishes(self, state: State) -> None:
        await finished(state)
        at = (await state.begin(GENERATION, [DOCUMENT], "w2", 0)).at
        assert [p.document for p in await state.pending(GENERATION)] == [DOCUMENT]
        assert await state.unfinished(GENERATION, [DOCUMENT, "x/y/z"], announces=False) == {DOCUMENT}
        assert await state.leftovers(GENERATION, older_s=LEASE, announces=False) == []
        assert await state.leftovers(GENERATION, older_s=OVER, announces=False) == [DOCUMENT]
        done = [Finish(manifest())]
        await state.finish(GENERATION, done, 2, writer="w1", stale=at)
        assert await state.unfinished(GENERATION, [DOCUMENT], announces=False) == {DOCUMENT}
        await state.finish(GENERATION, done, 2, writer="w1", stale=FUTURE)
        assert await state.pending(GENERATION) == []

    async def test_marks_carry_the_stores_time(self, state: State) -> None:
        first = await state.begin(GENERATION, [DOCUMENT], "w1", 0)
        assert len(first.at) == len(PAST)
        near = datetime.datetime.fromisoformat(first.at) - datetime.datetime.now(datetime.UTC)
        assert abs(near.total_seconds()) < 30
        await asyncio.sleep(0.01)
        assert (await state.begin(GENERATION, [DOCUMENT], "w2", 0)).at > first.at

    async def test_beginning_again_or_renewing_renews_the_mark(self, state: State) -> None:
        await finished(state)
        for again in (state.renew(GENERATION, [DOCUMENT], "w2"), state.begin(GENERATION, [DOCUMENT], "w2", 0)):
            await state.begin(GENERATION, [DOCUMENT], "w2", 0)
            await asyncio.sleep(0.01)
            late = (await state.begin(GENERATION, ["x/y/z"], "w3", 0)).at
            await asyncio.sleep(0.01)
            await again
            await state.finish(GENERATION, [Finish(manifest())], 2, writer="w1", stale=late)
            assert await state.leftovers(GENERATION, older_s=OVER, announces=False) == [DOCUMENT]
            await state.finish(GENERATION, [Finish(manifest())], 2, writer="w2", stale=late)

    async def test_off_what_was_left_go_only_the_writers_own_marks(self, state: State) -> None:
        await finished(state)
        await state.begin(GENERATION, [DOCUMENT], "w1", 0)
        assert await state.finish(GENERATION, [], 1, writer="w1", stale=FUTURE, left=[DOCUMENT]) == []
        assert await state.leftovers(GENERATION, older_s=OVER, announces=False) == []
        await state.begin(GENERATION, [DOCUMENT], "dead", 0)
        await state.begin(GENERATION, [DOCUMENT], "w1", 0)
        assert await state.finish(GENERATION, [], 1, writer="w1", stale=FUTURE, left=[DOCUMENT]) == []
        assert await state.leftovers(GENERATION, older_s=OVER, announces=False) == [DOCUMENT]

    async def test_many_marks_of_one_document_hide_no_other(self, state: State) -> None:
        for document in (DOCUMENT, "x/y/z"):
            await finished(state, document)
        for writer in ("w2", "w2+1", "w2+2"):  # as a writer leaves them whose store does not answer for long
            await state.begin(GENERATION, [DOCUMENT], writer, 0)
        await state.begin(GENERATION, ["x/y/z"], "w3", 0)
        assert await state.leftovers(GENERATION, older_s=OVER, announces=False, limit=2) == [DOCUMENT, "x/y/z"]
        assert await state.leftovers(GENERATION, older_s=OVER, announces=False, limit=1) == [DOCUMENT]

    async def test_a_relinking_mark_that_comes_later_survives(self, state: State) -> None:
        await finished(state)
        await state.mark_relinks(GENERATION, [DOCUMENT])
        await state.begin(GENERATION, [DOCUMENT], "w1", 0)
        await state.mark_relinks(GENERATION, [DOCUMENT])
        assert await state.finish(GENERATION, [Finish(manifest())], 1, writer="w1", stale="") == [True]
        assert await state.leftovers(GENERATION, older_s=LEASE, announces=False) == [DOCUMENT]
        await state.begin(GENERATION, [DOCUMENT], "w1", 0)
        await state.finish(GENERATION, [Finish(manifest())], 1, writer="w1", stale="")
        assert await state.leftovers(GENERATION, older_s=LEASE, announces=False) == []

    async def test_what_lacks_vectors_of_sentences_is_noted_until_it_is_published_with_them(self, state: State) -> None:
        async def published(document: str, unrefined: bool | None) -> None:
            await finished(state, document)
            done = [Finish(manifest(document), unrefined=unrefined)]
            assert await state.finish(GENERATION, done, 1, writer="w1", stale="") == [True]

        documents = ["a/b/1", "a/b/2", "x/y/z"]
        for document in documents:
            await published(document, True)
        await published("a/b/3", None)
        await published("a/b/1", None)  # as the text alone: what is noted stays
        assert await state.unrefined(GENERATION) == documents
        assert await state.unrefined(GENERATION, limit=1) == ["a/b/1"]
        assert await state.unrefined(GENERATION, after="a/b/1", limit=1) == ["a/b/2"]
        assert (await state.counts(GENERATION))["unrefined"] == 3
        await published("a/b/2", False)
        assert await state.unrefined(GENERATION) == ["a/b/1", "x/y/z"]
        assert await state.unrefined("other") == []
        lost = [Finish(manifest("x/y/z", 2), unrefined=False)]  # another version stands
        assert await state.finish(GENERATION, lost, 1, writer="w1", stale="") == [False]
        assert await state.unrefined(GENERATION) == ["a/b/1", "x/y/z"]

    async def test_only_what_stands_to_the_byte_is_finished(self, state: State) -> None:
        mine = manifest()
        other = msgspec.structs.replace(mine, facts_version="other")
        await state.advance([record(DOCUMENT, 1, "e1")])
        await state.begin(GENERATION, [DOCUMENT], "w1", 0)
        await state.commit_declared(GENERATION, [mine, other], {}, 0)
        done = Finish(mine, (outcome("e1", "applied"),))
        assert await state.finish(GENERATION, [done], 1, writer="w1", stale=FUTURE) == [False]
        assert await state.settled(GENERATION, [DOCUMENT]) == {}
        assert await state.outcomes(["e1"]) == {}
        assert await state.leftovers(GENERATION, older_s=OVER, announces=False) == [DOCUMENT]
        assert await state.finish(GENERATION, [Finish(other)], 1, writer="w1", stale="") == [True]
        assert await state.finish(GENERATION, [Finish(manifest("x/y/z"))], 1, writer="w1", stale="") == [False]

    async def test_an_end_that_mends_resolves_letters(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "e1")])
        await state.bury([letter(event="e1")])
        await state.commit(GENERATION, [manifest()])
        await state.finish(GENERATION, [Finish(manifest())], 1, writer="w", stale="")
        assert (await state.outcomes(["e1"]))["e1"] == "dead_letter"
        await state.finish(GENERATION, [Finish(manifest(), mends=True)], 1, writer="w", stale="")
        assert (await state.outcomes(["e1"]))["e1"] == "applied"
        assert await state.dead_letters() == []

    async def test_unannounced_events_are_left_over_where_it_announces(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "e1")])
        await state.commit(GENERATION, [manifest()])
        await state.finish(GENERATION, [Finish(manifest())], 1, writer="w", stale="")
        assert await state.leftovers(GENERATION, older_s=OVER, announces=False) == []
        assert await state.unfinished(GENERATION, [DOCUMENT], announces=False) == set()
        assert await state.leftovers(GENERATION, older_s=OVER, announces=True) == [DOCUMENT]
        assert await state.unfinished(GENERATION, [DOCUMENT], announces=True) == {DOCUMENT}

    async def test_what_is_behind_is_unfinished(self, state: State) -> None:
        await state.advance([record("a/b/1", 1), record("a/b/2", 1), record("a/b/3", 2), record("a/b/4", 1)])
        await state.commit(GENERATION, [manifest("a/b/2", stage="text"), manifest("a/b/3", 1), manifest("a/b/4", 1)])
        await state.collected(GENERATION, [(f"a/b/{n}", at(1)) for n in (2, 3, 4)], 1)
        asked = [f"a/b/{n}" for n in range(1, 6)]
        assert await state.unfinished(GENERATION, asked, announces=True) == {"a/b/1", "a/b/2", "a/b/3"}
        assert await state.leftovers(GENERATION, older_s=OVER, announces=True) == ["a/b/2"]
        assert await state.unfinished(GENERATION, [], announces=True) == set()

    async def test_leftovers_are_ordered_and_limited(self, state: State) -> None:
        keys = sorted((f"e/a/{k}" for k in "aZ亜ア𠮷ｱ19"), key=lambda k: k.encode())
        await state.advance([record(key, 1) for key in keys])
        await state.mark_relinks(GENERATION, list(reversed(keys)))
        assert await state.leftovers(GENERATION, older_s=LEASE, announces=True, limit=5) == keys[:5]
        await state.begin(GENERATION, keys[-1:], "dead", 0)
        await state.mark_relinks(GENERATION, keys[-1:])
        first = await state.leftovers(GENERATION, older_s=OVER, announces=True, limit=3)
        assert first == [keys[-1], *keys[:2]], "what a dead writer left comes before what may be on its way"
        assert await state.leftovers("g2", older_s=OVER, announces=True) == []

    async def test_what_has_no_record_is_not_left_over(self, state: State) -> None:
        """Nobody could publish it again: it would be asked for forever, in front of others."""
        await state.mark_relinks(GENERATION, ["e/a/1"])
        await state.begin(GENERATION, ["e/a/2"], "dead", 0)
        await state.commit(GENERATION, [manifest("e/a/3")])
        assert await state.leftovers(GENERATION, older_s=OVER, announces=True) == []
        asked = ["e/a/1", "e/a/2", "e/a/3"]
        assert await state.unfinished(GENERATION, asked, announces=True) == set()

    async def test_positions_of_records(self, state: State) -> None:
        await state.advance([record("a/b/1", 3), record("a/b/2", 1)])
        assert await state.positions(["a/b/1", "a/b/2", "x/y/z"]) == {"a/b/1": at(3), "a/b/2": at(1)}

    # ------------------------------------------------------------ names

    async def test_changes_of_names_are_numbered_in_order(self, state: State) -> None:
        first = await state.commit_declared(GENERATION, [manifest("e/a/1")], {"e/a/1": [F17, OTHER]}, 0)
        assert [(c.number, c.name, c.entities) for c in first.changes] == [
            (1, "カウンター", (("id", "k-08"),)), (2, "フォークリフト", (("id", "f-17"),)),
        ]  # fmt: skip
        assert first.declared == first.changes
        second = await state.commit_declared(GENERATION, [manifest("e/a/2")], {"e/a/2": [F18]}, 1)
        assert [(c.number, c.name, c.entities) for c in second.changes] == [
            (3, "フォークリフト", (("id", "f-17"), ("id", "f-18")))
        ]
        assert await state.name_changes(GENERATION, 0) == [first.changes[0], *second.changes]
        assert await state.name_changes(GENERATION, 3) == []
        assert (await state.begin(GENERATION, ["e/a/2"], "w", 2)).changes == second.changes
        assert await state.name_changes("g2", 0) == []

    async def test_changes_of_others_are_told_and_not_claimed(self, state: State) -> None:
        await state.commit_declared(GENERATION, [manifest("e/a/1")], {"e/a/1": [F17]}, 0)
        mine = await state.commit_declared(GENERATION, [manifest("e/a/2")], {"e/a/2": [F17]}, 0)
        assert (len(mine.changes), mine.declared) == (1, [])

    async def test_a_withdrawn_name_is_a_change_without_entities(self, state: State) -> None:
        await state.commit_declared(GENERATION, [manifest("e/a/1")], {"e/a/1": [F17]}, 0)
        gone = await state.commit_declared(GENERATION, [manifest("e/a/1", 2)], {"e/a/1": []}, 1)
        assert [(c.number, c.name, c.entities) for c in gone.declared] == [(2, "フォークリフト", ())]

    async def test_who_loses_declares_nothing(self, state: State) -> None:
        await state.commit(GENERATION, [manifest("e/a/1", 5)])
        lost = await state.commit_declared(GENERATION, [manifest("e/a/1", 4)], {"e/a/1": [F17]}, 0)
        assert (lost.won, lost.declared, lost.changes) == ([False], [], [])
        assert await state.declared_names(GENERATION) == []

    async def test_changes_are_looked_up_once_each(self, state: State) -> None:
        (first,) = (await state.commit_declared(GENERATION, [manifest("e/a/1")], {"e/a/1": [F17]}, 0)).declared
        assert await state.unlooked(GENERATION) == [first]
        (again,) = (await state.commit_declared(GENERATION, [manifest("e/a/2")], {"e/a/2": [F18]}, 1)).declared
        await state.looked_up(GENERATION, [first])
        assert await state.unlooked(GENERATION) == [again]
        await state.looked_up(GENERATION, [again])
        assert await state.unlooked(GENERATION) == []

    async def test_two_who_take_the_last_declarations_away_see_it_go(self, state: State) -> None:
        both = {"e/a/1": [F17], "e/a/2": [F17]}
        await state.commit_declared(GENERATION, [manifest(d) for d in both], both, 0)
        ends = await asyncio.gather(*(state.commit_declared(GENERATION, [manifest(d, 2)], {d: []}, 1) for d in both))
        assert sum(len(end.declared) for end in ends) == 1
        assert await state.declared_names(GENERATION) == []

    async def test_a_dropped_generation_leaves_nothing(self, state: State) -> None:
        await state.commit_declared(GENERATION, [manifest("e/a/1")], {"e/a/1": [F17]}, 0)
        await state.begin(GENERATION, ["e/a/1"], "w", 0)
        await state.drop_generation(GENERATION)
        assert await state.name_changes(GENERATION, 0) == []
        assert await state.leftovers(GENERATION, older_s=OVER, announces=False) == []
