"""Workers that die, come late or are all gone; a scheduler that is gone."""

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
def cluster():
    """A cluster of its own: its workers get killed."""
    from adafw.distributed import local_client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with local_client(2) as client:
        yield client


def make(client, parts, **how):
    from adafw.distributed import DistributedLinearModel

    return DistributedLinearModel.from_parts(
        parts(tuple(range(0, 121, 20))), adafw.losses.Logistic(), client=client, **how
    )


def pids(client):
    return [nanny.pid for nanny in client.cluster.workers.values() if nanny.pid]


def kill_at(iteration, client, all_of_them=False):
    """A callback: the kill comes between two iterations, and is noticed inside the next."""

    def callback(state, record):
        if state.t == iteration:
            for pid in pids(client)[: None if all_of_them else 1]:
                os.kill(pid, signal.SIGKILL)

    return callback


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


@pytest.mark.parametrize(
    "algorithm",
    [ALGORITHM, pytest.param(adafw.Corrective(), marks=pytest.mark.slow)],
    ids=str,
)
def test_a_killed_worker_is_no_loss(cluster, parts, single, algorithm, caplog):
    cluster.wait_for_workers(2)
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


def test_a_worker_that_comes_late_gets_work(cluster, parts):
    cluster.cluster.scale(1)
    wait_until(lambda: len(cluster.nthreads()) == 1)
    f = make(cluster, parts)
    (alone,) = f.rows.engine.placement.workers
    cluster.cluster.scale(2)
    wait_until(lambda: len(cluster.nthreads()) == 2)
    x = np.ones(14)

    def asked_of_both():
        f.gradient(x, np.arange(5))
        return len(f.rows.engine.placement.workers) == 2

    wait_until(asked_of_both)
    groups = f.rows.engine.placement.groups(range(6))
    assert sorted(map(len, groups.values())) == [3, 3]
    # What has moved is freed where it was.
    wait_until(lambda: len(cluster.run(_held, workers=[alone])[alone]) == 3)


# Without a module: workers cannot import this file, and get it by value.
_held = eval("lambda dask_worker: list(dask_worker.extensions['adafw'].parts)")


def test_parts_are_freed_with_the_objective(cluster, parts):
    import gc

    cluster.wait_for_workers(1)
    before = sum(map(len, cluster.run(_held).values()))
    f = make(cluster, parts)
    assert sum(map(len, cluster.run(_held).values())) == before + 6
    del f
    gc.collect()
    wait_until(lambda: sum(map(len, cluster.run(_held).values())) <= before)


def test_without_workers_the_state_is_handed_over(cluster, client, parts, single, tmp_path):
    from adafw.distributed import ClusterLost

    cluster.cluster.scale(2)
    wait_until(lambda: len(cluster.nthreads()) == 2)
    f = make(cluster, parts, patience=1.0)

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
def test_fifty_kills_at_random_times(parts, single):
    """Whenever they come: every run ends at the gap of one machine."""
    from adafw.distributed import local_client

    rng = np.random.default_rng(0)
    want = adafw.minimize(single, C, ALGORITHM, max_iterations=60, path="generic")
    with local_client(2) as client:
        f = make(client, parts)
        for _ in range(50):
            over = threading.Event()

            def kill(over=over, wait=rng.random() * 2, which=rng.integers(2)):
                over.wait(wait)
                running = pids(client)
                if running:
                    os.kill(running[which % len(running)], signal.SIGKILL)

            killer = threading.Thread(target=kill)
            killer.start()
            r = adafw.minimize(f, C, ALGORITHM, max_iterations=60)
            over.set()
            killer.join()
            assert np.abs(r.x - want.x).max() <= 1e-9 * C.radius
            assert r.gap == pytest.approx(want.gap, rel=1e-6)
        assert f.traffic.lost >= 10


@pytest.mark.slow
def test_keys_are_passed_through(parts, single, tmp_path):
    import shutil

    from distributed import Security

    from adafw.distributed import local_client

    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a key")
    key, cert = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    roles = {f"tls_{role}_{part}": file for role in ("client", "scheduler", "worker")
             for part, file in (("key", key), ("cert", cert))}  # fmt: skip
    security = Security(tls_ca_file=cert, require_encryption=True, **roles)
    with local_client(1, security=security, protocol="tls://") as client:
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        assert all(worker.startswith("tls://127.0.0.1:") for worker in client.nthreads())
        x = np.linspace(-1, 1, 14)
        np.testing.assert_allclose(make(client, parts).gradient(x), single.gradient(x), atol=1e-13)
