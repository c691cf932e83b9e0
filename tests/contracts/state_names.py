"""What every State must do with declared names."""

from pipeline.ports.state import DeclaredName, State
from tests.contracts.examples import GENERATION

F17 = DeclaredName("フォークリフト", "id", "f-17")
F18 = DeclaredName("フォークリフト", "id", "f-18")
OTHER = DeclaredName("カウンター", "id", "k-08")


class NamesContract:
    """Subclasses give the fixture `state`."""

    async def test_new_names_are_returned_in_order(self, state: State) -> None:
        assert await state.replace_names(GENERATION, {"e/a/1": [F17, OTHER, F17]}) == ["カウンター", "フォークリフト"]
        assert await state.replace_names(GENERATION, {"e/a/1": [OTHER, F17]}) == []
        assert await state.replace_names(GENERATION, {}) == []

    async def test_a_second_document_for_the_same_entity_changes_nothing(self, state: State) -> None:
        await state.replace_names(GENERATION, {"e/a/1": [F17]})
        assert await state.replace_names(GENERATION, {"e/a/2": [F17]}) == []
        assert await state.replace_names(GENERATION, {"e/a/1": []}) == []
        assert await state.replace_names(GENERATION, {"e/a/2": []}) == ["フォークリフト"]
        assert await state.declared_names(GENERATION) == []

    async def test_another_entity_under_the_same_name_is_a_change(self, state: State) -> None:
        await state.replace_names(GENERATION, {"e/a/1": [F17]})
        assert await state.replace_names(GENERATION, {"e/a/2": [F18]}) == ["フォークリフト"]

    async def test_changes_count_over_the_whole_call(self, state: State) -> None:
        await state.replace_names(GENERATION, {"e/a/1": [F17], "e/a/2": [OTHER]})
        swapped = {"e/a/1": [OTHER], "e/a/2": [F17]}
        assert await state.replace_names(GENERATION, swapped) == []

    async def test_declared_names_are_distinct_and_ordered(self, state: State) -> None:
        names = [
            DeclaredName(n, f, k)
            for n, f, k in (("b", "id", "1"), ("Z", "id", "1"), ("ア", "id", "2"), ("ア", "id", "1"), ("ア", "c", "9"))
        ]
        await state.replace_names(GENERATION, {"e/a/2": names, "e/a/1": names[:1]})
        found = await state.declared_names(GENERATION)
        assert [(n.name, n.family, n.key) for n in found] == [
            ("Z", "id", "1"), ("b", "id", "1"), ("ア", "c", "9"), ("ア", "id", "1"), ("ア", "id", "2"),
        ]  # fmt: skip
        assert {n.name: n.document for n in found}["Z"] == "e/a/2"
        assert next(n.document for n in found if n.name == "b") in ("e/a/1", "e/a/2")

    async def test_generations_are_apart(self, state: State) -> None:
        await state.replace_names("g1", {"e/a/1": [F17]})
        assert await state.declared_names("g2") == []
        assert await state.replace_names("g2", {"e/a/1": [F17]}) == ["フォークリフト"]

    async def test_many_names_at_once(self, state: State) -> None:
        names = [DeclaredName(f"名{n:04d}", "id", str(n)) for n in range(1_201)]
        declared = {f"e/a/{n:04d}": [name] for n, name in enumerate(names)}
        assert await state.replace_names(GENERATION, declared) == sorted(n.name for n in names)
        assert len(await state.declared_names(GENERATION)) == 1_201
