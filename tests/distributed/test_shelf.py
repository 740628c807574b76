"""A worker's side of it, without a worker."""

import asyncio

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")

from adafw.distributed.parts import HeldPart
from adafw.distributed.recipes import Block
from adafw.distributed.shelf import POINTS, Shelf
from adafw.distributed.wire import Failed, Message, Missing, Reply, pack

A = np.arange(12.0).reshape(4, 3) + 1


class Stubborn(Exception):
    """Can be taken apart, and not be put together again."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


@pytest.fixture
def shelf():
    made = Shelf(1)
    made.parts["d", 0] = HeldPart.of(Block(A, np.ones(4)), "a part")
    yield made
    made.close()


def ask(x, version=1, data="d", known=None, operation="dot"):
    return Message(data, [0], operation, {"dtype": "float64"}, [{}], pack(x, known), version)


def test_an_answer_and_what_is_wrong_with_a_question(shelf):
    x = np.array([1.0, -2.0, 0.5])
    reply = shelf.perform(ask(x))
    assert isinstance(reply, Reply)
    np.testing.assert_array_equal(reply.own[0], A @ x)
    assert isinstance(shelf.perform(ask(x, data="other")), Missing)
    failed = shelf.perform(ask(x, operation="no such"))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, KeyError)


def test_parts_that_are_missing_among_others_are_told(shelf):
    shelf.parts["d", 2] = shelf.parts["d", 0]
    message = Message("d", [0, 1, 2, 3], "dot", {"dtype": "float64"}, [{}] * 4, pack(np.ones(3)), 1)
    assert shelf.perform(message) == Missing([1, 3])


def test_as_many_points_are_kept_as_the_coordinator_counts_on(shelf):
    x = np.array([1.0, 2.0, 3.0])
    for version in range(POINTS):
        shelf.perform(ask(x + version, version))
    again = Message("d", [0], "dot", {"dtype": "float64"}, [{}], pack(x, (0, x)), POINTS)
    assert again.x.base == 0
    np.testing.assert_array_equal(shelf.perform(again).own[0], A @ x)
    assert shelf.perform(again) == Missing([], x=True), "the next one has pushed it out"


def test_some_parts_of_some_data_are_dropped(shelf):
    for key in (("d", 1), ("d", 2), ("other", 1)):
        shelf.parts[key] = shelf.parts["d", 0]
    shelf.perform(ask(np.ones(3)))
    shelf.drop("d", [1, 7])
    assert list(shelf.parts) == [("d", 0), ("d", 2), ("other", 1)]
    assert list(shelf.points) == ["d"]
    shelf.drop("d")
    assert (list(shelf.parts), list(shelf.points)) == ([("other", 1)], [])


def test_points_are_kept_for_each_data_and_forgotten_in_time(shelf):
    shelf.parts["other", 0] = shelf.parts["d", 0]
    x, z = np.ones(3), np.full(3, 7.0)
    shelf.perform(ask(x))
    shelf.perform(ask(z, data="other"))
    new = np.array([1.0, 1.0, 2.0])
    change = ask(new, 2, known=(1, x))
    assert change.x.base == 1
    np.testing.assert_array_equal(shelf.perform(change).own[0], A @ new)
    for version in range(3, 3 + POINTS):
        shelf.perform(ask(z, version))
    assert shelf.perform(change) == Missing([], x=True)
    shelf.drop("d")
    assert list(shelf.points) == ["other"]


def test_who_leaves_has_lost_its_parts(shelf):
    """Not an error of the question: it is asked again elsewhere."""
    held, message = dict(shelf.parts), ask(np.ones(3))
    shelf.close()
    assert shelf.perform(message) == Missing([0])
    shelf.parts.update(held)  # as if it had looked just before
    assert shelf.perform(message) == Missing([0])

    async def at_the_end():
        await asyncio.get_running_loop().shutdown_default_executor()
        return await shelf.answer(message)

    assert asyncio.run(at_the_end())["reply"].data == Missing([0])


def test_errors_come_as_they_can_travel():
    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(f"{one} and {two}")

    known = Failed.by(ValueError("so"), "there").error
    assert isinstance(known, ValueError)
    assert known.__notes__ == ["there"]
    odd = Failed.by(Odd(1, 2)).error
    assert (type(odd), str(odd)) == (RuntimeError, "Odd: 1 and 2")
    stubborn = Failed.by(Stubborn(1, 2), "there").error
    assert (type(stubborn), str(stubborn)) == (RuntimeError, "Stubborn: 1 and 2")
    assert stubborn.__notes__ == ["there"]
