import numpy as np
import pytest

from adafw.distributed.placement import ROOM, UNEVEN, Placement, Worker

BIG = Worker(1, np.inf)


def placed(owners, sizes=None):
    placement = Placement(len(owners))
    for k, who in enumerate(owners):
        placement.put(k, who, 10 if sizes is None else sizes[k])
    return placement


def test_at_first_neighbours_stay_together():
    homes = Placement(5).homes(range(5), {"b": BIG, "a": BIG}, [0] * 5)
    assert homes == [(0, "a"), (1, "a"), (2, "a"), (3, "b"), (4, "b")]


def test_what_a_lost_worker_held_goes_where_least_is():
    placement = placed(["a", "a", "a", "b"])
    assert placement.homes([4], {"a": BIG, "b": BIG}, [10]) == [(4, "b")]
    # Two threads can do twice the work.
    assert placed(["a", "a", "b"]).homes([3], {"a": Worker(4, np.inf), "b": BIG}, [10]) == [
        (3, "a")
    ]


def test_a_worker_is_never_filled_beyond_its_memory():
    workers = {"a": Worker(1, 100.0), "b": Worker(1, 10.0)}
    placement = placed(["a"], [30])
    assert placement.homes([1, 2], workers, [20, 20]) == [(1, "a")]
    assert ROOM * 100 < 30 + 20 + 20


@pytest.mark.parametrize("seed", range(20))
def test_moves_make_loads_even_and_none_is_in_vain(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 50, 12)
    placement = placed([str(rng.choice(["a", "b"])) for _ in sizes], sizes)
    workers = {"a": BIG, "b": BIG, "late": BIG}

    def loads():
        return [sum(placement.sizes[k] for k in placement.parts_of(w)) for w in workers]

    before = max(loads())
    for k, worker in placement.moves(workers):
        placement.put(k, worker, placement.sizes[k])
    assert max(loads()) < before
    assert min(loads()) > 0
    assert max(loads()) - min(loads()) <= max(sizes.max(), (UNEVEN - 1) * max(loads()))
    assert placement.moves(workers) == []


def test_one_part_has_nowhere_better_to_go():
    assert placed(["a"]).moves({"a": BIG, "b": BIG}) == []
    assert placed(["a", "gone"]).moves({"a": BIG, "b": BIG}) == []


def test_the_part_moves_that_is_nearest_to_half_the_gap():
    placement = placed(["a", "a", "a"], [10, 55, 35])
    assert placement.moves({"a": BIG, "b": BIG})[0] == (1, "b")  # of 100, 50 are too many
    assert placement.parts_of("a") == [0, 1, 2]
    assert placement.groups([2, 0]) == {"a": [0, 2]}
    assert placement.moves({"a": BIG}) == []


def test_no_move_fills_a_worker_beyond_its_memory():
    """What it holds already counts."""
    placement = placed(["a", "a", "a", "a", "b"], [20, 20, 20, 20, 10])
    assert placement.moves({"a": BIG, "b": BIG}) == [(0, "b"), (1, "b")]
    assert placement.moves({"a": BIG, "b": Worker(1, 31 / ROOM)}) == [(0, "b")]
    assert placement.moves({"a": BIG, "b": Worker(1, 29 / ROOM)}) == []


def test_of_equal_workers_the_first_and_of_parts_the_largest():
    """Loads are counted on from part to part, those of workers that are gone not at all."""
    workers = {"b": BIG, "a": BIG}
    assert placed(["gone"], [99]).homes([3, 1, 2], workers, [5, 20, 10]) == [
        (1, "a"), (2, "b"), (3, "b"),
    ]  # fmt: skip


def test_nothing_moves_while_a_worker_is_missing():
    """Its parts go first: where to, the others do not know yet."""
    placement = placed(["a", "a", "a", "gone"])
    assert placement.moves({"a": BIG, "b": BIG, "gone": BIG}) == [(0, "b")]
    assert placement.moves({"a": BIG, "b": BIG}) == []
