"""What every Cache must do."""

from pipeline.ports.cache import Cache


class CacheContract:
    """Subclasses give the fixture."""

    async def test_missing_keys_are_absent(self, cache: Cache) -> None:
        await cache.put("tokens:1", {"a": b"1"})
        assert await cache.get("tokens:1", ["a", "b"]) == {"a": b"1"}
        assert await cache.get("tokens:1", []) == {}

    async def test_kinds_are_apart(self, cache: Cache) -> None:
        await cache.put("tokens:1", {"a": b"1"})
        await cache.put("tokens:2", {"a": b"2"})
        assert await cache.get("tokens:1", ["a"]) == {"a": b"1"}
        assert await cache.get("tokens:2", ["a"]) == {"a": b"2"}

    async def test_existing_keys_are_overwritten(self, cache: Cache) -> None:
        await cache.put("k", {"a": b"1", "b": b"1"})
        await cache.put("k", {"a": b"2"})
        assert await cache.get("k", ["a", "b"]) == {"a": b"2", "b": b"1"}

    async def test_any_bytes_and_many_keys(self, cache: Cache) -> None:
        items = {f"鍵{n}": bytes([n % 256]) * (n % 7) for n in range(2_000)}
        await cache.put("k", items)
        assert await cache.get("k", list(items)) == items

    async def test_nothing_put_is_nothing_kept(self, cache: Cache) -> None:
        await cache.put("k", {})
        assert await cache.get("k", ["a"]) == {}
