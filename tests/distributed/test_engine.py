"""What the coordinator makes of answers, and what it sends: without a cluster."""

import asyncio
import gc
import math
from types import SimpleNamespace

import numpy as np
import pytest

import adafw

pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")

from adafw.distributed.crew import Crew, Gone, Traffic, _check_alike
from adafw.distributed.engine import Answer, Engine
from adafw.distributed.parts import HeldPart
from adafw.distributed.placement import Placement, Worker
from adafw.distributed.recipes import Block, CallPart, DaskPart, FilePart, as_recipes
from adafw.distributed.shelf import POINTS
from adafw.distributed.wire import Failed, Missing, Packed, Reply, pack


def engine():
    made = Engine.__new__(Engine)
    made._points = {}
    return made


def talking(answers):
    """An engine whose workers answer so, one after the other, and what they were sent."""
    made, sent, left = engine(), [], list(answers)
    made.data, made.crew = "d", SimpleNamespace(traffic=Traffic())

    async def send(worker, message):
        sent.append(message)
        return left.pop(0)

    made._send = send
    return made, sent


def test_answers_come_in_the_order_of_the_rows():
    answer = Answer(
        (np.ones(3),), {2: np.array([5.0]), 0: np.array([1.0, 2.0]), 1: np.array([3.0])}
    )
    assert answer.total.tolist() == [1, 1, 1]
    assert [part.tolist() for part in answer.each()] == [[1, 2], [3], [5]]
    assert answer.by_rows().tolist() == [1, 2, 3, 5]
    positions = {0: np.array([3, 0]), 1: np.array([1]), 2: np.array([2])}
    assert answer.by_rows(positions, 4).tolist() == [2, 3, 5, 1]
    wide = Answer(
        (), {4: np.array([[1.0, 2.0]], np.float32), 7: np.array([[3.0, 4.0]], np.float32)}
    )
    found = wide.by_rows({4: np.array([1]), 7: np.array([0])}, 2)
    assert found.tolist() == [[3, 4], [1, 2]]
    assert found.dtype == np.float32
    nothing = Answer((), {}).by_rows({}, 0, (3,), np.float32)
    assert (nothing.shape, nothing.dtype) == ((0, 3), np.float32)


def test_sums_are_made_in_the_order_of_the_parts():
    """Whoever answered first: rounding depends on the order. Packed vectors are added in place."""
    sparse, full = np.zeros(9), np.arange(1.0, 10.0)
    sparse[4] = 0.5
    replies = [
        ([3, 5], Reply((1e-16, pack(sparse)), ["d", "f"])),
        ([0, 4], Reply((1.0, pack(full)), ["a", "e"])),
        ([1], Reply((-1.0, pack(full)), ["b"])),
    ]
    assert replies[0][1].summed[1].index is not None
    assert replies[1][1].summed[1].index is None
    answer = engine()._joined(replies)
    assert answer.summed[0] == 1e-16  # (1 - 1) + 1e-16
    expected = 2 * full
    expected[4] += 0.5
    assert answer.summed[1].tolist() == expected.tolist()
    assert answer.own == {0: "a", 1: "b", 3: "d", 4: "e", 5: "f"}
    assert full.tolist() == list(range(1, 10)), "what was sent is not written to"
    first = engine()._joined([([0], Reply((pack(sparse),), [None]))])
    assert first.total.tolist() == sparse.tolist()
    full.flags.writeable = False  # as what has come over a wire may be
    both = [([0], Reply((pack(full),), [None])), ([1], Reply((pack(sparse),), [None]))]
    assert engine()._joined(both).total.tolist() == (full + sparse).tolist()


def test_a_point_is_sent_as_a_change_of_what_a_worker_knows():
    made, x = engine(), np.arange(1.0, 41.0)
    assert made._packed("a", x).index is None
    made._points["a"] = [(3, x - 1), (7, x)]
    same = made._packed("a", x.copy())
    assert (same.base, same.nbytes) == (7, 0)
    assert made._packed("a", x - 1).base == 3
    near = x.copy()
    near[5] = -1
    change = made._packed("a", near)
    assert (change.base, change.index.tolist()) == (7, [5])
    assert change.unpack(x).tolist() == near.tolist()
    assert made._packed("b", near).index is None
    assert POINTS == 4


def test_what_was_asked_is_copied_to_be_compared():
    traffic = Traffic(1, 2, 3, 4, 5.0, 6, 7)
    before = traffic.copy()
    traffic.trips += 1
    assert before == Traffic(1, 2, 3, 4, 5.0, 6, 7)
    assert traffic != before


def test_names_and_functions_become_recipes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def made():
        return np.eye(2), np.ones(2)

    found = as_recipes(["a.svm", tmp_path / "b.npz", made], format=None, target="t", n_features=9,
                       dtype=np.float32)  # fmt: skip
    svm, npz, call = found
    assert (svm.path, npz.path) == (str(tmp_path / "a.svm"), str(tmp_path / "b.npz"))
    assert svm.dtype == npz.dtype == "float32"
    assert (svm.columns.n_features, npz.columns.n_features) == (9, None)
    assert svm.columns.target == npz.columns.target == "t"
    assert (str(svm), str(call)) == (svm.path, "part 2 (made)")
    assert as_recipes("a.svm", format=None, target=None, n_features=None, dtype=float) == [
        FilePart(str(tmp_path / "a.svm"))
    ]
    settled = svm.settled(12, True)
    assert (settled.columns.n_features, settled.columns.zero_based) == (12, True)
    assert svm.settled(12, None).columns.zero_based == svm.columns.zero_based
    assert npz.settled(12, True) == npz
    assert call.settled(12, True) is call.bare() is call
    assert svm.arguments() == call.arguments() == ()
    forced = FilePart("x.txt", "libsvm").settled(5, False)
    assert (forced.columns.n_features, forced.columns.zero_based) == (5, False)


def test_blocks_are_checked_where_they_are_made():
    X, y = np.eye(3), np.arange(3.0)
    block = CallPart(lambda: (X, y, [1, 2, 3]), 4).make()
    assert (block.y.tolist(), block.weight.tolist()) == ([0, 1, 2], [1, 2, 3])
    assert block.zero_based is None
    part = DaskPart(("a", "b"), 5, True)
    assert part.arguments() == ("a", "b")
    assert part.bare() == DaskPart((), 5, True)
    assert str(part) == "block 5 of X"
    assert part.make(X, np.ones((3, 2))).y.shape == (3, 2)
    for make, message in (
        (lambda: DaskPart((), 5).make(X, np.ones((3, 2))), r"block 5 of X must have one target"),
        (lambda: part.make(X, np.ones(2)), r"one target a row, shape \(3,\), got \(2,\)"),
        (lambda: part.make(X, y, np.ones(2)), r"one weight a row, shape \(3,\), got \(2,\)"),
        (lambda: part.make(X, [0.0, np.inf, 1.0]), "finite targets, got inf in its row 1"),
        (lambda: CallPart(lambda: (X, y), 4).make() and CallPart(lambda: X, 4).make(),
         r"must return \(X, y\)"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=message):
            make()


def test_a_vector_that_is_all_of_it_is_sent_as_it_is():
    """Positions take four bytes each: they must be worth it."""
    v = np.ones(12)
    v[8:] = 0  # 8 entries of 12 bytes are as many as 12 of 8
    assert pack(v).index is None
    v[7] = 0
    assert pack(v).index.tolist() == list(range(7))
    assert pack(v.astype(np.float32)).index is None  # 7 of 8 bytes against 12 of 4
    matrix = np.zeros((2, 3))
    matrix[1, 1] = 2
    assert pack(matrix).index.tolist() == [4]
    assert Packed(3, np.array([2.0]), np.array([1], np.uint32)).unpack().tolist() == [0, 2, 0]
    base = np.ones(3)
    changed = Packed(3, np.array([2.0]), np.array([1], np.uint32), 9).unpack(base)
    assert (changed.tolist(), base.tolist()) == ([1, 2, 1], [1, 1, 1])


def test_the_last_points_are_those_that_a_worker_is_taken_to_know():
    made, sent = talking(Reply() for _ in range(POINTS + 3))
    points = [np.arange(1.0, 41.0) + k for k in range(POINTS + 3)]
    for version, x in enumerate(points):
        asyncio.run(made._call("a", "dot", [0], x, version, {}, lambda k: {}))
    assert [version for version, _ in made._points["a"]] == list(range(3, POINTS + 3))
    assert made._packed("a", points[3]).base == 3
    assert made._packed("a", points[2]).base is None
    assert [message.version for message in sent] == list(range(POINTS + 3))


def test_a_worker_that_has_forgotten_a_point_is_sent_all_of_it():
    x = np.arange(1.0, 41.0)
    made, sent = talking([Missing([], x=True), Reply((), ["told"])])
    made._points["a"] = [(3, x)]
    reply = asyncio.run(made._call("a", "dot", [0], x, 4, {}, lambda k: {}))
    assert reply.own == ["told"]
    assert [(m.x.base, m.x.values.size) for m in sent] == [(3, 0), (None, 40)]
    assert [version for version, _ in made._points["a"]] == [4]
    made, sent = talking([Missing([], x=True)] * 3)
    with pytest.raises(Gone, match="it forgets what it is told"):
        asyncio.run(made._call("a", "dot", [0], x, 4, {}, lambda k: {}))
    for answer, error, said in (
        (Missing([0]), Gone, "it has lost its rows"),
        (Failed(KeyError("what")), KeyError, "what"),
    ):
        with pytest.raises(error, match=said):
            asyncio.run(talking([answer])[0]._call("a", "dot", [0], x, 4, {}, lambda k: {}))


def test_a_round_trip_counts_once_and_takes_as_long_as_the_slowest():
    made = engine()
    made._versions = iter(range(9))
    placement = Placement(3)
    for k, who in enumerate("aba"):
        placement.put(k, who, 1)

    async def nothing(*_):
        pass

    made.crew = SimpleNamespace(
        traffic=Traffic(), placement=placement, look=nothing, place=nothing,
        header=lambda k: SimpleNamespace(rows=10 + k),
    )  # fmt: skip
    asked = []

    async def call(worker, operation, numbers, x, version, common, own):
        asked.append((worker, numbers, version))
        return Reply((), list(numbers), seconds={"a": 2.0, "b": 3.0}[worker])

    made._call = call
    asyncio.run(made._ask("dot", [0, 1, 2], None, {}, lambda k: {}))
    assert (made.traffic.trips, made.traffic.seconds, made.traffic.rows) == (1, 3.0, 33)
    batches = {0: np.arange(4), 1: np.arange(2)}
    asyncio.run(made._ask("dot", [0, 1], None, {}, lambda k: {"batch": batches[k]}))
    assert (made.traffic.trips, made.traffic.seconds, made.traffic.rows) == (2, 6.0, 39)
    assert asked == [("a", [0, 2], 0), ("b", [1], 0), ("a", [0], 1), ("b", [1], 1)]


@pytest.mark.parametrize("takes_a_number", [True, False])
def test_workers_are_known_by_their_threads_and_memory(takes_a_number):
    """Those that have no limit have room for all; releases differ in what they can be asked."""
    known = {"a": {"nthreads": 2, "memory_limit": 100}, "b": {"nthreads": 1, "memory_limit": 0}}
    asked = []

    class Scheduler:
        async def ncores(self):
            return dict.fromkeys(known, 1)

        async def identity(self, **how):
            if how and not takes_a_number:
                raise TypeError("identity() got an unexpected keyword argument 'n_workers'")
            asked.append(how)
            return {"workers": known}

    crew = Crew(SimpleNamespace(scheduler=Scheduler()), "d", [], None, 1.0)
    found = {"a": Worker(2, 100), "b": Worker(1, math.inf)}
    assert asyncio.run(crew._told()) == found
    assert asyncio.run(crew._told()) == found
    assert asked == [{"n_workers": -1} if takes_a_number else {}], "sizes are asked for once"
    known["c"] = {"nthreads": 4, "memory_limit": 50}
    assert asyncio.run(crew._told()) == {**found, "c": Worker(4, 50)}
    del known["a"]
    assert asyncio.run(crew._told()).keys() == {"b", "c"}
    crew.client.scheduler = None
    with pytest.raises(OSError, match="not connected"):
        asyncio.run(crew._told())


def test_parts_that_do_not_belong_together():
    def header(n=2, dtype=np.float64, weight=None, names=None, zero_based=None):
        block = Block(np.eye(2, n).astype(dtype), np.ones(2), weight, zero_based, names)
        return HeldPart.of(block, "x").header()

    def check(*headers, n=2):
        _check_alike([(h, f"part {k}") for k, h in enumerate(headers)], n)

    w = np.ones(2)
    check(header(), header())
    check(header(weight=w), header(weight=2 * w))
    check(header(names=("a", "b")), header(names=("a", "b")))
    check(header(3), header(2, zero_based=True), n=3)
    for others, said in (
        ([header(), header(3)], "as many columns, got 3 in part 1, 2 elsewhere"),
        ([header(1), header()], "as many columns, got 1 in part 0, 2 elsewhere"),
        ([header(), header(dtype=np.float32)], "got float32 dense in part 1, float64 dense in"),
        (
            [header(names=("a", "b")), header(names=("b", "a"))],
            "same columns, got others in part 1",
        ),
        ([header(names=("a", "b")), header()], "same columns, got others in part 1"),
        ([header(weight=w), header()], "weights or none, got both: see part 1"),
        ([header(), header(weight=w)], "weights or none, got both: see part 1"),
        ([], "some part must have a row"),
    ):
        with pytest.raises(ValueError, match=said):
            check(*others)


def test_a_file_named_by_its_path_alone_in_the_format_that_is_given(tmp_path):
    """And its columns keep their names."""
    path = tmp_path / "rows.txt"
    path.write_text("a,b,t\n1,2,3\n4,5,6\n")
    (part,) = as_recipes(path, format="csv", target="a", n_features=None, dtype=np.float32)
    block = part.make()
    assert (block.names, block.zero_based, block.weight) == (("b", "t"), None, None)
    assert (block.X.tolist(), block.X.dtype) == ([[2, 3], [5, 6]], np.float32)
    assert block.y.tolist() == [1, 4]


def test_functions_may_return_lists_and_rows_of_targets_have_one_weight():
    X, y = np.eye(3), np.arange(3.0)
    assert CallPart(lambda: [X, y], 0).make().y.tolist() == [0, 1, 2]
    block = DaskPart((), 0, True).make(X, np.ones((3, 2)), [1, 2, 3])
    assert (block.y.shape, block.weight.tolist()) == ((3, 2), [1, 2, 3])
    with pytest.raises(ValueError, match=r"one weight a row, shape \(3,\), got \(3, 2\)"):
        DaskPart((), 0, True).make(X, np.ones((3, 2)), np.ones((3, 2)))


class Client:
    """What an engine asks of a client before there is anything to ask of workers."""

    asynchronous, status = False, "running"

    def __init__(self):
        self.loop = SimpleNamespace(add_callback=lambda call: self.called.append(call))
        self.called = []

    def register_plugin(self, plugin):
        self.plugin = plugin

    def sync(self, call):
        return asyncio.run(call())


def test_what_an_engine_asks_of_its_client(monkeypatch):
    monkeypatch.setattr(Crew, "load_all", lambda self: asyncio.sleep(0))
    client = Client()
    made = Engine(client, [], patience=0)
    assert (made.crew.patience, client.plugin.name) == (0, "adafw")
    for wrong in (-1, math.nan, math.inf):
        with pytest.raises(ValueError, match="patience must be a number"):
            Engine(client, [], patience=wrong)

    async def told(word):
        return word

    for client.status in ("running", "connecting"):
        assert made._sync(told, "so") == "so"
    for client.status in ("closing", "closed"):
        with pytest.raises(adafw.objectives.base.Unavailable, match=f"client is {client.status}"):
            made._sync(told, "so")
    client.asynchronous = True
    with pytest.raises(TypeError, match="client must be a synchronous Dask client"):
        Engine(client, [])


def test_workers_are_told_when_their_parts_are_not_asked_for_any_more(monkeypatch):
    monkeypatch.setattr(Crew, "load_all", lambda self: asyncio.sleep(0))
    for status, calls in (("running", 1), ("closed", 0)):
        client = Client()
        made = Engine(client, [])
        client.status = status
        del made
        gc.collect()
        assert len(client.called) == calls
