"""What is kept decoded: the same answer as without it, once while in use, and never more than was allowed."""

from pipeline.backends.decoded import DecodedCache, pair_lookup


def test_what_is_in_use_is_decoded_once_and_the_rest_makes_room() -> None:
    decoded: list[bytes] = []

    def decode(one: bytes, other: bytes) -> bytes:
        decoded.append(one)
        return one + other

    cache = DecodedCache(decode, 1_000)
    used = b"in use" * 8
    for number in range(200):
        one = bytes([number]) * 50
        assert cache(one, b"x") == one + b"x"
        assert cache(used, b"x") == used + b"x"
        assert cache(used, b"y") == used + b"y"
    assert decoded.count(used) == 2 and len(decoded) == 202
    held = {blobs for half in (cache._newer, cache._older) for blobs in half}
    assert sum(len(one) + len(other) for one, other in held) <= 1_000


def test_a_pair_is_found_exactly_where_it_was_put() -> None:
    regular = pair_lookup(("検知", "知a", "ab"))
    assert [pair in regular for pair in ("検知", "知a", "ab", "a検", "ba")] == [True, True, True, False, False]
    odd = pair_lookup(("xy ", "z", "荷重計"))
    assert [pair in odd for pair in ("荷重計", "荷重", "xy", "yz", "z")] == [True, False, False, False, True]
    assert "荷重" not in pair_lookup(())
