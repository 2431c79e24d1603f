import random

from tflint_gpu.trace.profile.intervals import clip, holds, length, merge, subtract, union


def _points(intervals):
    return {point for start, end in intervals for point in range(start, end)}


def test_merge_joins_what_touches_and_drops_what_is_empty():
    assert merge([(5, 7), (1, 3), (3, 4), (9, 9), (6, 8)]) == [(1, 4), (5, 8)]


def test_arithmetic_agrees_with_sets_of_points():
    chance = random.Random(7)
    for _ in range(300):
        some, other = (
            [(low, low + chance.randrange(8)) for low in (chance.randrange(40) for _ in range(6))] for _ in "ab"
        )
        left, right = merge(some), merge(other)
        start, end = sorted(chance.sample(range(45), 2))
        assert length(left) == len(_points(some))
        assert _points(subtract(left, right)) == _points(some) - _points(other)
        assert _points(clip(left, start, end)) == _points(some) & set(range(start, end))
        assert {point for point in range(50) if holds(left, point)} == _points(some)
        assert _points(union(left, [], right)) == _points(some) | _points(other)
        assert union(left, []) == left
