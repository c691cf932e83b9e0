"""What is kept decoded: the same answer as without it, once while in use, and never more than was allowed."""

from pipeline.backends.decoded import DecodedCache
from pipeline.text.pairs import packed_pairs


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


def test_packed_pairs_are_the_sequence_that_they_were_made_of() -> None:
    pairs = ("検知", "知a", "ab", "検知", "12")
    packed = packed_pairs(pairs)
    assert packed == pairs and list(packed) == list(pairs) and len(packed) == 5
    assert (packed[1], packed[-1], packed[1:3]) == ("知a", "12", ("知a", "ab"))
    assert [packed.count(pair) for pair in ("検知", "ab", "a検", "b検", "知", "")] == [2, 1, 0, 0, 0, 0]
    assert [pair in packed for pair in ("検知", "知a", "12", "知検", "検", "")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_what_is_no_pair_is_kept_as_it_is() -> None:
    for odd in (("xy ", "z", "荷重計"), ("x ", " y"), ("", "abcd"), ("ab", "c"), ()):
        assert tuple(packed_pairs(odd)) == odd
    assert "荷重" not in packed_pairs(("荷重計",)) and "荷重" not in packed_pairs(())
