"""Files as parts, and what is said of those that are no good."""

import subprocess
import sys

import numpy as np
import pytest

import adafw
from adafw.io.libsvm import write_libsvm

pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")

LOGISTIC = adafw.losses.Logistic()


def model(client, names, **how):
    from adafw.distributed import DistributedLinearModel

    return DistributedLinearModel.from_parts(names, LOGISTIC, client=client, **how)


@pytest.fixture
def files(tmp_path, data):
    """LIBSVM parts; the first lacks the last columns."""
    A, y, _ = data()
    first = A[:40].toarray()
    first[:, 11:] = 0
    whole = np.vstack([first, A[40:].toarray()])
    names = []
    for k, (a, b) in enumerate([(0, 40), (40, 70), (70, 120)]):
        names.append(tmp_path / f"part-{k}.svm")
        write_libsvm(names[-1], whole[a:b], y[a:b])
    return names, whole, y


def test_libsvm_parts_are_one_matrix(client, files):
    names, A, y = files
    f = model(client, names)
    assert f.shape == (14,)
    x = np.random.default_rng(0).normal(size=14)
    np.testing.assert_allclose(f.rows.dot(x), A @ x, atol=1e-13)
    np.testing.assert_array_equal(f.y, y)
    wider = model(client, names, n_features=20)
    assert wider.shape == (20,)
    with pytest.raises(ValueError, match=r"part-1\.svm has features up to number 14, more than 12"):
        model(client, names[1:], n_features=12)


def test_ids_from_0_in_one_part_count_for_all(client, tmp_path, data):
    A, y, _ = data()
    A = A.toarray()
    A[:50, 0] = 0  # no id 0 in the first file, which alone would count from 1
    A[60, 0] = 1
    write_libsvm(tmp_path / "a.svm", A[:50], y[:50], zero_based=True)
    write_libsvm(tmp_path / "b.svm", A[50:], y[50:], zero_based=True)
    f = model(client, [tmp_path / "a.svm", tmp_path / "b.svm"])
    x = np.random.default_rng(0).normal(size=14)
    assert f.shape == (14,)
    np.testing.assert_allclose(f.rows.dot(x), A @ x, atol=1e-13)


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_other_formats(client, tmp_path, data, kind):
    A, y, _ = data()
    A = A.toarray()
    names = []
    for k, (a, b) in enumerate([(0, 70), (70, 120)]):
        names.append(str(tmp_path / f"{k}.{kind}"))
        if kind == "npy":
            np.save(names[-1], np.column_stack([A[a:b], y[a:b]]))
        elif kind == "npz":
            np.savez(names[-1], X=A[a:b], y=y[a:b])
        else:
            pandas = pytest.importorskip("pandas")
            pytest.importorskip("pyarrow")
            table = pandas.DataFrame(A[a:b], columns=[f"c{j}" for j in range(14)])
            table.assign(y=y[a:b]).to_parquet(names[-1])
    f = model(client, names)
    np.testing.assert_allclose(f.rows.dot(np.ones(14)), A.sum(1), atol=1e-13)
    np.testing.assert_array_equal(f.y, y)


def test_a_bad_line_is_named_with_its_file(client, files):
    names, _, _ = files
    lines = names[1].read_text().splitlines()
    lines[6] = "1 3:0.5 4:abc"
    names[1].write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"part-1\.svm, line 7"):
        model(client, names)


def test_what_does_not_belong_together_is_refused(client, tmp_path, data):
    A, y, _ = data()
    with pytest.raises(FileNotFoundError, match=r"missing\.svm"):
        model(client, [tmp_path / "missing.svm"])
    dense = A.toarray()
    for others, said in (
        ([lambda: (dense[:, :9], y)], r"as many columns, got 9 in part 1 .*, 14 elsewhere"),
        ([lambda: (A, y)], "of one kind, got float64 csr in part 1"),
        ([lambda: (dense.astype(np.float32), y)], "of one kind, got float32 dense in part 1"),
        ([lambda: (dense, y[:-1])], r"part 1 .* must have one target a row, shape \(120,\)"),
        ([lambda: (dense, y, y[:3])], "must have one weight a row"),
        ([lambda: (dense, y, abs(y))], "weights or none, got both"),
        ([lambda: dense], r"must return \(X, y\)"),
        ([lambda: (dense * np.nan, y)], "part 1 .*: A must be finite"),
        ([lambda: (dense, np.where(np.arange(120) == 7, np.nan, y))], "part 1 .* nan in its row 7"),
        ([lambda: (dense, y + 3)], "part 1 .*: Logistic takes labels -1 and \\+1"),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            model(client, [lambda: (dense, y), *others])
    with pytest.raises(TypeError, match=r"file names or functions that return \(X, y\), got 3"):
        model(client, [3])
    with pytest.raises(ValueError, match="at least one file name or function"):
        model(client, [])
    with pytest.raises(TypeError, match="loss must be one of"):
        type(model(client, [lambda: (dense, y)])).from_parts([], "logistic", client=client)


def test_whatever_a_function_raises_comes_back_with_its_part(client):
    """Errors that cannot be pickled, too."""
    plain, odd = (
        eval(f"lambda: (_ for _ in ()).throw({what})")
        for what in ("KeyError('x')", "type('Odd', (Exception,), {})('so')")
    )
    with pytest.raises(KeyError, match="x") as told:
        model(client, [plain])
    assert "while part 0 (<lambda>) was made" in told.value.__notes__
    with pytest.raises(Exception, match="so") as told:
        model(client, [odd])
    assert "while part 0 (<lambda>) was made" in told.value.__notes__


def test_what_is_no_dask_array_is_refused(client, data):
    da = pytest.importorskip("dask.array")
    from adafw.distributed import DistributedLinearModel

    A, y, _ = data()
    X = da.from_array(A.toarray(), chunks=(60, 14))
    with pytest.raises(TypeError, match="X must be a dask array, got csr_array"):
        DistributedLinearModel(A, y, LOGISTIC, client=client)
    with pytest.raises(ValueError, match=r"y must have one entry per row of X, shape \(120,\)"):
        DistributedLinearModel(X, y[:-1], LOGISTIC, client=client)
    with pytest.raises(ValueError, match="two dimensions"):
        DistributedLinearModel(X[:, 0], y, LOGISTIC, client=client)


def test_rows_stay_where_they_are(client):
    """Neither the rows nor predictions pass through the coordinator of a full-gradient method."""
    made = lambda: (  # noqa: E731
        __import__("numpy").random.default_rng(0).normal(size=(20000, 50)),
        __import__("numpy").ones(20000),
    )
    f = model(client, [made, made])
    before = f.traffic.copy()
    adafw.minimize(f, adafw.L1Ball(1.0), adafw.FW(), max_iterations=5)
    moved = f.traffic.received - before.received
    assert moved < 50 * 8 * 2 * 12 < 20000 * 8


def test_loopback_alone_by_default(client):
    import psutil

    here = psutil.Process()
    listening = [
        socket.laddr.ip
        for process in (here, *here.children(recursive=True))
        for socket in process.net_connections()
        if socket.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 3  # the scheduler and two workers at least
    assert set(listening) == {"127.0.0.1"}


def test_a_missing_client_is_named(monkeypatch):
    from adafw.distributed import cluster

    def none():
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr(cluster, "get_client", none)
    with pytest.raises(
        ValueError, match=r"client must be given, or a distributed\.Client be there"
    ):
        cluster.client_or_default(None)


@pytest.mark.parametrize("address", ["odd://127.0.0.1:1", "127.0.0.1:nope"])
def test_an_address_that_is_none_is_told_as_one_where_nobody_answers(address):
    from adafw.distributed import cluster

    with pytest.raises(ConnectionError, match=f"no Dask scheduler answers at {address} "):
        cluster.connected(address, timeout=1)


_OWN = """
from adafw.distributed import cluster

with cluster.local_client(1, processes=False) as made:
    assert made.cluster.status.name == "running"
    assert cluster.client_or_default(made) is made
assert made.cluster.status.name == "closed"
"""


def test_a_cluster_of_ones_own_ends_with_its_client():
    """In a process of its own: this one has a cluster already."""
    from adafw.distributed import cluster

    subprocess.run([sys.executable, "-c", _OWN], check=True, timeout=200)
    with pytest.raises(ValueError, match="n_workers must be an integer >= 1, got 0"):
        cluster.local_client(0)


def test_the_widest_part_may_be_the_one_that_is_counted_anew(client, tmp_path):
    """Read as if its ids counted from 1, it seems a column narrower than it is."""
    (tmp_path / "a.svm").write_text("1 2:0.5 7:3\n-1 4:1\n")
    (tmp_path / "b.svm").write_text("1 0:2\n-1 3:1 4:5\n")
    f = model(client, [tmp_path / "a.svm", tmp_path / "b.svm"])
    assert f.shape == (8,)
    expected = np.zeros((4, 8))
    expected[[0, 0, 1, 2, 3, 3], [2, 7, 4, 0, 3, 4]] = [0.5, 3, 1, 2, 1, 5]
    np.testing.assert_array_equal(f.rows.dot(np.arange(8.0)), expected @ np.arange(8.0))
    assert f.traffic.loads == 3, "one part is made twice"


def test_parts_with_other_names_of_columns_are_refused(client, tmp_path):
    for name, head in (("a", "u,v,t"), ("b", "v,u,t")):
        (tmp_path / f"{name}.csv").write_text(f"{head}\n1,2,1\n3,4,-1\n")
    f = model(client, [tmp_path / "a.csv", tmp_path / "a.csv"])
    assert f.rows.shape == (4, 2)
    with pytest.raises(ValueError, match=r"same columns, got others in .*b\.csv"):
        model(client, [tmp_path / "a.csv", tmp_path / "b.csv"])


@pytest.mark.slow
def test_memory_stays_within_what_the_parts_need(client):
    """240 MB of rows on two workers: the coordinator never sees them, a worker has them once."""
    import gc

    import psutil

    def make(k):
        def part():
            import numpy as np

            A = np.random.default_rng(k).normal(size=(75_000, 100))
            return A, np.where(A[:, 0] + A[:, 1] > 0, 1.0, -1.0)

        return part

    here = psutil.Process()
    workers = [psutil.Process(nanny.pid) for nanny in client.cluster.workers.values()]
    small = model(client, [lambda: (np.eye(60, 100), np.ones(60))])
    adafw.minimize(small, adafw.L1Ball(1.0), adafw.Corrective(), max_iterations=2)  # compiles
    del small
    gc.collect()
    before = here.memory_info().rss, [w.memory_info().rss for w in workers]
    f = model(client, [make(k) for k in range(4)])
    most = [0, 0, 0]

    def look(state, record):
        now = [here, *workers]
        most[:] = [max(a, p.memory_info().rss) for a, p in zip(most, now, strict=True)]

    for algorithm in (adafw.AdaCSFW(learning_rate=1.0), adafw.Corrective(), adafw.FW()):
        adafw.minimize(
            f, adafw.L1Ball(5.0), algorithm, max_iterations=30, record_every=1, callbacks=look
        )
    assert most[0] - before[0] < 80e6  # 300 000 rows: y, alpha, slopes and the like, 2.4 MB each
    for worker, start in zip(most[1:], before[1], strict=True):
        assert worker - start < 2.2 * 120e6  # its rows, and the same again while it makes them
