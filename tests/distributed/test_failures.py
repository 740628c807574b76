"""Workers that die, come late or are all gone; a scheduler that is gone."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import adafw

pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")

C = adafw.L1Ball(4.0)
ALGORITHM = adafw.AdaCSFW(learning_rate=0.3)


@pytest.fixture(scope="module")
def cluster(quick_starts):
    """A cluster of its own: its workers get killed."""
    from adafw.distributed import local_client

    with local_client(2) as client:
        yield client


def make(client, parts, **how):
    from adafw.distributed import DistributedLinearModel

    return DistributedLinearModel.from_parts(
        parts(tuple(range(0, 121, 20))), adafw.losses.Logistic(), client=client, **how
    )


def pids(client):
    """Of the workers that are there: a nanny whose worker dies while it starts gives up."""
    there = set(client.nthreads())
    nannies = client.cluster.workers.values()
    return [nanny.pid for nanny in nannies if nanny.pid and nanny.worker_address in there]


def kill_at(iteration, client, all_of_them=False):
    """A callback: the kill comes between two iterations, and is noticed inside the next."""

    def callback(state, record):
        if state.t == iteration:
            for pid in pids(client)[: None if all_of_them else 1]:
                os.kill(pid, signal.SIGKILL)

    return callback


def wait_until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def steady(client, n):
    """Waits for n workers, all of whom answer: none that was killed is about to come back.

    The scheduler alone does not know: one that is being closed counts until it is gone, and one
    that was killed is missing only until its nanny has started the next.
    """

    def all_there():
        # Again and again: a nanny whose worker dies while it starts gives up, and is replaced only
        # when someone asks for as many as there should be.
        client.cluster.scale(n)
        answers = sorted(client.run(os.getpid, on_error="ignore").values())
        return len(client.cluster.workers) == len(answers) == n and answers == sorted(pids(client))

    wait_until(all_there)


@pytest.mark.parametrize(
    "algorithm",
    [ALGORITHM, pytest.param(adafw.Corrective(), marks=pytest.mark.slow)],
    ids=str,
)
def test_a_killed_worker_is_no_loss(cluster, parts, single, algorithm, caplog):
    steady(cluster, 2)
    f = make(cluster, parts)
    assert len(f.rows.engine.placement.workers) == 2
    with caplog.at_level(logging.WARNING, "adafw.distributed"):
        there = adafw.minimize(
            f, C, algorithm, max_iterations=12, record_every=1, callbacks=kill_at(3, cluster)
        )
    here = adafw.minimize(single, C, algorithm, max_iterations=12, record_every=1, path="generic")
    assert f.traffic.lost >= 1
    assert any("is lost" in record.message for record in caplog.records)
    assert np.abs(there.x - here.x).max() <= 1e-9 * C.radius
    assert there.gap == pytest.approx(here.gap, rel=1e-6, abs=1e-13)


def test_a_worker_that_dies_with_its_answer(cluster, parts, single, monkeypatch):
    """A part is made, and its worker is gone before it is told of: Dask alone would wait for it."""
    steady(cluster, 2)
    gather, victims = cluster._gather, pids(cluster)[:1]

    async def late(*arguments, **options):
        while victims:
            os.kill(victims.pop(), signal.SIGKILL)
            await asyncio.sleep(0.2)
        return await gather(*arguments, **options)

    monkeypatch.setattr(cluster, "_gather", late)
    f = make(cluster, parts)
    x = np.ones(14)
    np.testing.assert_allclose(f.gradient(x), single.gradient(x), atol=1e-14)


def test_a_worker_that_comes_late_gets_work(cluster, parts, caplog):
    from adafw.distributed import DistributedLinearModel

    steady(cluster, 1)
    f = make(cluster, parts)
    (alone,) = f.rows.engine.placement.workers
    # Parts that only one can make, say, as another machine does not see the files.
    bound = [_only_in(pids(cluster)[0], made) for made in parts((0, 40, 80, 120))]
    g = DistributedLinearModel.from_parts(bound, adafw.losses.Logistic(), client=cluster)
    steady(cluster, 2)
    x = np.ones(14)
    want = g.rows.dot(x)

    def shared():
        f.rows.dot(x)
        groups = f.rows.engine.placement.groups(range(6))
        return sorted(map(len, groups.values())) == [3, 3]

    def refused():
        np.testing.assert_array_equal(g.rows.dot(x), want)
        return "has not moved" in caplog.text

    wait_until(shared)
    # What has moved is freed where it was.
    wait_until(lambda: held(cluster, f)[alone] == 3)
    assert sum(held(cluster, f).values()) == 6
    with caplog.at_level(logging.WARNING, "adafw.distributed"):
        wait_until(refused)
    np.testing.assert_array_equal(g.rows.dot(x), want)
    assert g.rows.engine.placement.workers == {alone}
    assert f.traffic.lost == g.traffic.lost == 0


def held(client, f_or_name):
    """{worker: how many parts of an objective it holds}; others' parts may go at any time."""
    name = f_or_name if isinstance(f_or_name, str) else f_or_name.rows.engine.data
    return client.run(_held, name)


# Without a module: workers cannot import this file, and get it by value.
_held = eval(
    "lambda data, dask_worker: sum(k[0] == data for k in dask_worker.extensions['adafw'].parts)"
)


def test_parts_are_freed_with_the_objective(cluster, parts):
    import gc

    steady(cluster, 2)
    f = make(cluster, parts)
    name = f.rows.engine.data
    assert sum(held(cluster, name).values()) == 6
    del f
    gc.collect()
    wait_until(lambda: not any(held(cluster, name).values()))


def _only_in(pid, made):
    return eval("lambda: made() if __import__('os').getpid() == pid else open('/no/such/file')",
                {"made": made, "pid": pid})  # fmt: skip


def test_what_a_worker_still_holds_is_freed_after_it_was_given_up(cluster, parts):
    """A worker that did not answer in time, and is there after all."""
    steady(cluster, 2)
    f = make(cluster, parts)
    x = np.ones(14)
    want = f.rows.dot(x)
    crew = f.rows.engine.crew
    slow = crew.placement.owner[0]
    f.rows.engine._sync(crew.lose, slow, [0], "no answer")
    np.testing.assert_allclose(f.rows.dot(x), want, atol=1e-14)
    assert crew.placement.workers == set(cluster.nthreads()) - {slow}

    def each_part_once():
        f.rows.dot(x)
        return sum(held(cluster, f).values()) == 6

    wait_until(each_part_once)


@pytest.mark.parametrize("arrives", [False, True], ids=["made anew", "moved"])
def test_a_part_that_is_not_what_it_was_is_refused(cluster, arrives):
    """Say, a file that was written again, or a generator without a seed."""
    from adafw.distributed import DistributedLinearModel

    steady(cluster, 1 if arrives else 2)
    made = eval(
        "lambda: (lambda r: (r.normal(size=(30, 4)), r.choice([-1.0, 1.0], 30)))"
        "(__import__('numpy').random.default_rng())"
    )
    f = DistributedLinearModel.from_parts([made] * 4, adafw.losses.Logistic(), client=cluster)
    crew = f.rows.engine.crew
    if arrives:
        steady(cluster, 2)
    else:
        f.rows.engine._sync(crew.lose, crew.placement.owner[0], [0], "no answer")

    def asked_on():
        f.value(np.random.default_rng().normal(size=4))
        return False

    with pytest.raises(ValueError, match=r"part \d .* must make the same rows whenever"):
        wait_until(asked_on)


def test_a_part_made_anew_is_as_wide_as_it_was(cluster, tmp_path):
    """LIBSVM parts of different widths, one of which has no id at all."""
    from adafw.distributed import DistributedLinearModel

    steady(cluster, 2)
    texts = ("1 1:2 3:1\n-1 2:1\n", "-1\n1\n", "1 5:1\n-1 1:1\n")
    names = [tmp_path / f"{k}.svm" for k in range(3)]
    for name, text in zip(names, texts, strict=True):
        name.write_text(text)
    f = DistributedLinearModel.from_parts(names, adafw.losses.Logistic(), client=cluster)
    x, want = np.arange(1.0, 6.0), np.array([5.0, 2.0, 0.0, 0.0, 5.0, 1.0])
    np.testing.assert_array_equal(f.rows.dot(x), want)
    crew = f.rows.engine.crew
    for worker in list(crew.placement.workers):
        f.rows.engine._sync(crew.lose, worker, crew.placement.parts_of(worker), "no answer")
    np.testing.assert_array_equal(f.rows.dot(x), want)


def test_without_workers_the_state_is_handed_over(cluster, client, parts, single, tmp_path):
    from adafw.distributed import ClusterLost

    steady(cluster, 2)
    f = make(cluster, parts, patience=3.0)

    def leave(state, record):
        if state.t == 4:
            cluster.cluster.scale(0)
            wait_until(lambda: not cluster.nthreads())

    with pytest.raises(ClusterLost, match=r"0 workers are there, and . of 6 parts") as lost:
        adafw.minimize(f, C, ALGORITHM, max_iterations=12, record_every=1, callbacks=leave)
    state = lost.value.state
    assert 4 <= state.t < 12
    assert not state.torn
    state.save(tmp_path / "state.npz")
    state = adafw.State.load(tmp_path / "state.npz")
    # On another cluster, cut another way.
    from adafw.distributed import DistributedLinearModel

    g = DistributedLinearModel.from_parts(parts(), adafw.losses.Logistic(), client=client)
    there = adafw.minimize(g, C, ALGORITHM, state=state, max_iterations=12, record_every=1)
    here = adafw.minimize(single, C, ALGORITHM, max_iterations=12, record_every=1, path="generic")
    assert np.abs(there.x - here.x).max() <= 1e-9 * C.radius
    assert len(there.trace) == len(here.trace)


def test_a_closed_client_says_so(client, parts):
    from distributed import Client

    from adafw.distributed import ClusterLost

    other = Client(client.scheduler.address, set_as_default=False)
    f = make(other, parts)
    other.close()
    with pytest.raises(ClusterLost, match="the Dask client is closed"):
        f.value(np.ones(14))


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.mark.slow
def test_without_a_scheduler_the_state_is_handed_over(parts, tmp_path):
    from distributed import Client

    from adafw.distributed import ClusterLost

    file = str(tmp_path / "scheduler.json")
    scheduler = start(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
        "--no-dashboard", "--scheduler-file", file,
    )  # fmt: skip
    wait_until(lambda: os.path.exists(file))
    worker = start(
        "distributed.cli.dask_worker", "--scheduler-file", file, "--host", "127.0.0.1",
        "--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "60",
    )  # fmt: skip
    try:
        client = Client(scheduler_file=file, set_as_default=False, direct_to_workers=True)
        client.wait_for_workers(1)
        f = make(client, parts, patience=3.0)

        def leave(state, record):
            if state.t == 4:
                scheduler.kill()
                scheduler.wait()
                worker.kill()

        with pytest.raises(ClusterLost, match=r"scheduler has not answered|client is") as lost:
            adafw.minimize(f, C, ALGORITHM, max_iterations=12, record_every=1, callbacks=leave)
        assert lost.value.state.t >= 4
        client.close(timeout=1)
    finally:
        for process in (scheduler, worker):
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [2, 4])
def test_fifty_kills_at_random_times(quick_starts, parts, single, n_workers):
    """Whenever they come: every run ends at the point and the gap of one machine."""
    from adafw.distributed import local_client

    rng, how = np.random.default_rng(n_workers), {"max_iterations": 100, "path": "generic"}
    want = adafw.minimize(single, C, ALGORITHM, **how)
    with local_client(n_workers) as client:
        f, times = make(client, parts), []
        for _ in range(3):
            began = time.monotonic()
            adafw.minimize(f, C, ALGORITHM, **how)
            times.append(time.monotonic() - began)
        inside = 0
        for _ in range(200):  # some come too late
            steady(client, n_workers)
            over, killed = threading.Event(), threading.Event()
            when, victim = rng.random() * min(times), rng.choice(pids(client))

            def kill(over=over, killed=killed, when=when, victim=victim):
                if not over.wait(when):
                    os.kill(victim, signal.SIGKILL)
                    killed.set()

            killer = threading.Thread(target=kill)
            killer.start()
            r = adafw.minimize(f, C, ALGORITHM, **how)
            over.set()
            killer.join()
            inside += killed.is_set()
            assert np.abs(r.x - want.x).max() <= 1e-9 * C.radius
            assert r.gap == pytest.approx(want.gap, rel=1e-6)
            if inside == 50:
                break
        assert inside == 50


@pytest.mark.slow
def test_keys_are_passed_through(parts, single, tmp_path):
    import shutil

    from distributed import Security

    from adafw.distributed import local_client
    from adafw.distributed.cluster import connected

    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a key")

    def keys(name):
        key, cert = str(tmp_path / f"{name}.key"), str(tmp_path / f"{name}.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
             f"/CN={name}", "-keyout", key, "-out", cert],
            check=True, capture_output=True,
        )  # fmt: skip
        return key, cert

    def security(name, ca):
        key, cert = pairs[name]
        roles = {f"tls_{role}_{part}": file for role in ("client", "scheduler", "worker")
                 for part, file in (("key", key), ("cert", cert))}  # fmt: skip
        return Security(tls_ca_file=pairs[ca][1], require_encryption=True, **roles)

    pairs = {name: keys(name) for name in ("localhost", "stranger")}
    mine = security("localhost", "localhost")
    with local_client(1, security=mine, protocol="tls://") as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        assert all(worker.startswith("tls://127.0.0.1:") for worker in client.nthreads())
        x = np.linspace(-1, 1, 14)
        np.testing.assert_allclose(make(client, parts).gradient(x), single.gradient(x), atol=1e-13)
        with connected(address, mine) as other:
            np.testing.assert_allclose(
                make(other, parts).gradient(x), single.gradient(x), atol=1e-13
            )
        for theirs in (security("stranger", "localhost"), security("stranger", "stranger")):
            with pytest.raises(ConnectionError, match="no Dask scheduler answers at tls"):
                connected(address, theirs, timeout=5)
        with pytest.raises(ConnectionError, match="no Dask scheduler answers at tcp"):
            connected(address.replace("tls", "tcp"), timeout=5)
        with pytest.raises(ValueError, match=r"needs keys .* distributed\.comm\.tls"):
            connected(address, timeout=5)
