"""What every State must do with outcomes and dead letters."""

import asyncio

import msgspec

from pipeline.ports.publishing import Finish
from pipeline.ports.state import Generation, State
from tests.contracts.examples import DOCUMENT, GENERATION, at, letter, manifest, outcome, record


class OutcomesContract:
    """Subclasses give the fixture `state`."""

    # ------------------------------------------------------------ announcing

    async def test_the_first_announcement_stands(self, state: State) -> None:
        await state.announce(
            [outcome("log:1", "applied"), outcome("log:2", "duplicate"), outcome("log:3", "superseded")]
        )
        await state.announce(
            [outcome("log:1", "superseded"), outcome("log:2", "applied"), outcome("log:3", "dead_letter")]
        )
        known = {"log:1": "applied", "log:2": "duplicate", "log:3": "superseded"}
        assert await state.outcomes(["log:1", "log:2", "log:3", "log:4"]) == known
        assert await state.outcomes([]) == {}

    async def test_a_dead_letter_may_become_something_else(self, state: State) -> None:
        await state.announce([outcome("log:1", "dead_letter")])
        await state.announce([outcome("log:1", "applied")])
        await state.announce([outcome("log:1", "dead_letter")])
        assert await state.outcomes(["log:1"]) == {"log:1": "applied"}

    async def test_an_outcome_without_event_is_none(self, state: State) -> None:
        await state.announce([outcome("", "applied")])
        assert (await state.counts(GENERATION))["outcome.applied"] == 0

    async def test_announcing_clears_the_origins_of_the_record(self, state: State) -> None:
        await state.advance([record(DOCUMENT, n, f"log:{n}") for n in (1, 2, 3)])
        await state.announce(
            [outcome("log:1", "superseded"), outcome("log:3", "applied", ordinal=3), outcome("x", "applied")]
        )
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ("log:2",)

    async def test_announcers_at_once_agree(self, state: State) -> None:
        names = ("applied", "duplicate", "superseded")
        for n in range(10):
            await asyncio.gather(*(state.announce([outcome(f"log:{n}", name)]) for name in names))  # type: ignore[arg-type]
            first = await state.outcomes([f"log:{n}"])
            await state.announce([outcome(f"log:{n}", name) for name in names])  # type: ignore[arg-type]
            assert await state.outcomes([f"log:{n}"]) == first

    # ------------------------------------------------------------ burying

    async def test_burying_keeps_the_letter_and_announces(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:0", "log:1")])
        await state.bury([letter()])
        assert await state.dead_letter("letter-1") == letter()
        assert await state.dead_letter("none") is None
        assert await state.outcomes(["log:1"]) == {"log:1": "dead_letter"}
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ("log:0",)

    async def test_burying_again_counts_attempts_and_opens_it_again(self, state: State) -> None:
        await state.bury([letter()])
        await state.resolve(["letter-1"])
        assert (await state.dead_letters()) == []
        await state.bury([letter(reason="again")])
        again = msgspec.structs.replace(letter(reason="again"), attempts=2)
        assert await state.dead_letters() == [again]

    async def test_a_letter_keeps_its_first_event(self, state: State) -> None:
        """A rebuild that refuses the record again knows no event any more: nothing new is announced."""
        await state.bury([letter(event="log:1")])
        await state.bury([letter(event="")])
        kept = await state.dead_letter("letter-1")
        assert kept is not None
        assert (kept.event, kept.attempts) == ("log:1", 2)
        assert (await state.counts(GENERATION))["outcome.dead_letter"] == 1

    async def test_a_letter_without_event_announces_nothing_and_learns_it(self, state: State) -> None:
        await state.bury([letter(event="")])
        assert (await state.counts(GENERATION))["outcome.dead_letter"] == 0
        await state.bury([letter(event="log:1")])
        assert await state.outcomes(["log:1"]) == {"log:1": "dead_letter"}
        kept = await state.dead_letter("letter-1")
        assert kept is not None
        assert kept.event == "log:1"

    async def test_the_buried_winner_again_is_redelivered(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:1")])
        await state.bury([letter()])
        results = await state.advance([record(DOCUMENT, 1, "log:1"), record(DOCUMENT, 1, "log:2")])
        assert [r.result for r in results] == ["redelivered", "duplicate"]

    async def test_of_a_record_only_the_newest_version_has_an_open_letter(self, state: State) -> None:
        """Whatever the order in which versions are refused, the same letters are open at the end."""
        for n, order in enumerate(((1, 2), (2, 1))):
            document = f"e/a/{n}"
            for ordinal in order:
                await state.advance([record(document, ordinal, f"{n}:{ordinal}")])
                await state.bury([letter(f"{n}:{ordinal}", f"{n}:{ordinal}", document, ordinal)])
            assert [m.id for m in (await state.dead_positions([document]))[document]] == [f"{n}:2"]
            known = {f"{n}:1": "superseded", f"{n}:2": "dead_letter"}
            assert await state.outcomes([f"{n}:1", f"{n}:2"]) == known

    async def test_letters_that_are_of_no_record_stay_open_beside_newer_ones(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 2, "log:2")])
        await state.bury([letter("a", "log:1", ordinal=1, stage="reconcile"), letter("b", "log:2", ordinal=2)])
        assert [m.id for m in await state.dead_letters()] == ["a", "b"]

    # ------------------------------------------------------------ reading letters

    async def test_letters_page_in_order_of_their_id(self, state: State) -> None:
        await state.bury([letter(name, f"log:{name}") for name in ("c", "a", "d", "b")])
        assert [m.id for m in await state.dead_letters(limit=2)] == ["a", "b"]
        assert [m.id for m in await state.dead_letters(after="b")] == ["c", "d"]

    async def test_resolved_letters_are_a_list_of_their_own(self, state: State) -> None:
        await state.bury([letter("a", "log:1"), letter("b", "log:2")])
        await state.resolve(["a", "none"])
        assert [m.id for m in await state.dead_letters()] == ["b"]
        assert [(m.id, m.resolved) for m in await state.dead_letters(resolved=True)] == [("a", True)]

    async def test_open_letters_of_documents(self, state: State) -> None:
        await state.bury(
            [letter("a", "1", "e/a/1"), letter("b", "2", "e/a/1"), letter("c", "3", "e/a/2"), letter("d", "4", "")]
        )
        await state.resolve(["b"])
        found = await state.dead_positions(["e/a/1", "e/a/3"])
        assert {key: [m.id for m in letters] for key, letters in found.items()} == {"e/a/1": ["a"]}

    # ------------------------------------------------------------ resolving

    async def test_resolving_for_a_generation_gives_the_event_back(self, state: State) -> None:
        await self._withdrawn(state)
        await state.resolve(["letter-1"], GENERATION)
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ("log:1",)
        assert [p.document for p in await state.pending(GENERATION)] == [DOCUMENT]
        await state.announce([outcome("log:1", "applied")])
        assert await state.outcomes(["log:1"]) == {"log:1": "applied"}

    async def test_resolving_twice_gives_it_back_once(self, state: State) -> None:
        await self._withdrawn(state)
        await state.resolve(["letter-1"], GENERATION)
        await state.resolve(["letter-1"], GENERATION)
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ("log:1",)

    async def test_resolving_a_letter_without_event_makes_it_pending(self, state: State) -> None:
        await self._withdrawn(state, event="")
        await state.resolve(["letter-1"], GENERATION)
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ()
        assert [p.document for p in await state.pending(GENERATION)] == [DOCUMENT]

    async def test_resolving_without_generation_gives_nothing_back(self, state: State) -> None:
        await self._withdrawn(state)
        await state.resolve(["letter-1"])
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ()
        assert await state.pending(GENERATION) == []

    async def test_a_newer_record_takes_nothing_back(self, state: State) -> None:
        await self._withdrawn(state)
        await state.advance([record(DOCUMENT, 2, "log:2")])
        await state.resolve(["letter-1"], GENERATION)
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ("log:2",)

    async def _withdrawn(self, state: State, event: str = "log:1") -> None:
        """A record whose only version ended as a dead letter."""
        await state.advance([record(DOCUMENT, 1, *([event] if event else []))])
        await state.bury([letter(event=event)])
        await state.commit(GENERATION, [msgspec.structs.replace(manifest(op="delete"), position=at(1))])
        await state.collected(GENERATION, [(DOCUMENT, at(1))], 1)

    # ------------------------------------------------------------ outlived

    async def test_an_applied_version_resolves_letters_of_the_record_up_to_it(self, state: State) -> None:
        for name, document, ordinal in (("a", "e/a/1", 1), ("b", "e/a/2", 2), ("c", "e/a/3", 3)):
            await state.bury([letter(name, f"log:{name}", document, ordinal, stage="apply")])
        await state.bury([letter("d", "log:d", "e/a/4", 1), letter("e", "log:e", "e/a/1", 1, stage="decode")])
        await state.outlived([(f"e/a/{n}", at(2)) for n in (1, 2, 3)])
        assert [m.id for m in await state.dead_letters()] == ["c", "d", "e"]
        known = {"a": "superseded", "b": "applied", "c": "dead_letter", "d": "dead_letter", "e": "dead_letter"}
        assert await state.outcomes([f"log:{n}" for n in known]) == {f"log:{n}": o for n, o in known.items()}

    async def test_outliving_nothing(self, state: State) -> None:
        await state.outlived([])
        await state.outlived([(DOCUMENT, at(1))])
        assert await state.dead_letters() == []

    async def test_outliving_a_letter_without_event_announces_nothing(self, state: State) -> None:
        await state.bury([letter(event="")])
        await state.outlived([(DOCUMENT, at(1))])
        assert await state.dead_letters() == []
        assert (await state.counts(GENERATION))["outcome.applied"] == 0

    # ------------------------------------------------------------ letters of a generation

    async def test_what_a_rebuild_refuses_says_nothing_of_what_is_live(self, state: State) -> None:
        for name in ("g1", "g2"):
            await state.create_generation(Generation(name=name, created_at=f"{name}", versions={}))
        await state.promote("g1", "2026-01-01T00:00:00.000000Z")
        await state.advance([record(DOCUMENT, 1, "log:1")])
        await state.bury([msgspec.structs.replace(letter("b"), generation="g2")])
        assert (await state.dead_letters(), await state.dead_positions([DOCUMENT])) == ([], {})
        assert await state.outcomes(["log:1"]) == {} and (await state.counts("g1"))["dead_letters"] == 0
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ("log:1",)
        kept = await state.dead_letter("b")
        assert kept is not None and (kept.generation, kept.event) == ("g2", "log:1")

        await state.bury([msgspec.structs.replace(letter("a"), generation="g1")])
        assert [one.id for one in await state.dead_letters()] == ["a"]
        assert await state.outcomes(["log:1"]) == {"log:1": "dead_letter"}

        await state.promote("g2", "2026-01-02T00:00:00.000000Z")
        assert [one.id for one in await state.dead_letters()] == ["b"]
        assert {key: [one.id for one in found] for key, found in (await state.dead_positions([DOCUMENT])).items()} == {
            DOCUMENT: ["b"]
        }
        assert (await state.counts("g2"))["dead_letters"] == 1
        await state.drop_generation("g1")
        assert await state.dead_letter("a") is None

    async def test_a_generation_resolves_its_own_letters_only(self, state: State) -> None:
        for name in ("g1", "g2"):
            await state.create_generation(Generation(name=name, created_at=f"{name}", versions={}))
        await state.promote("g1", "2026-01-01T00:00:00.000000Z")
        await state.bury([msgspec.structs.replace(letter("a"), generation="g1")])
        await state.bury([msgspec.structs.replace(letter("b", event=""), generation="g2")])
        kept = await state.dead_letter("b")
        assert kept is not None and kept.event == "log:1", "as the other generation's letter has it"
        (won,) = await state.commit("g2", [manifest()])
        assert won
        await state.finish("g2", [Finish(manifest(), mends=True)], 1, writer="w", stale="")
        found = [await state.dead_letter(name) for name in ("a", "b")]
        assert [one is not None and one.resolved for one in found] == [False, True]
        assert await state.outcomes(["log:1"]) == {"log:1": "dead_letter"}
