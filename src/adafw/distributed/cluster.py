"""Clients: one of a cluster on this machine, or the one that is there."""

from typing import Any

from distributed import Client, LocalCluster, get_client

from adafw import checks
from adafw.distributed.shelf import DeafPlugin
from adafw.distributed.typing import DaskObject


def local_client(
    n_workers: int = 2, threads_per_worker: int = 1, memory_limit: str | int = "auto",
    security: DaskObject = None, **options: Any,
) -> Client:  # fmt: skip
    """A client of a new cluster of processes on this machine, which listens on loopback alone.

    Close it, or use it in a `with` statement: its workers end with it. Its dashboard, where Dask's
    own needs are installed, is at `client.dashboard_link`.

    Parameters
    ----------
    n_workers, threads_per_worker, memory_limit : as in `distributed.LocalCluster`.
    security : a `distributed.Security`; True makes keys for this cluster alone (TLS).
    options : whatever else `LocalCluster` takes.
    """
    checks.integer(n_workers, "n_workers", 1)
    # Workers that are threads of this process have no sockets.
    host = "127.0.0.1" if options.get("processes", True) else None
    cluster = LocalCluster(
        **{
            "n_workers": n_workers, "threads_per_worker": threads_per_worker, "processes": True,
            "memory_limit": memory_limit, "host": host, "dashboard_address": "127.0.0.1:0",
            "security": security, **options,
        }
    )  # fmt: skip
    client = _Owner(cluster, direct_to_workers=True)
    client.register_plugin(DeafPlugin())
    return client


def connected(address: str, security: DaskObject = None, timeout: float = 30.0) -> Client:
    """A client of the scheduler at this address."""
    try:
        return Client(address, direct_to_workers=True, security=security, timeout=timeout)
    except TypeError as error:  # what Dask says of an address with tls:// and no keys
        raise ValueError(
            f"{address} needs keys ({error}): name them in Dask's configuration, "
            "distributed.comm.tls, or give security=."
        ) from None
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address} ({error}); start one with dask scheduler."
        ) from None


def client_or_default(client: DaskObject) -> Client:
    """The client given, or the one that was made last."""
    if client is not None:
        return client
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "client must be given, or a distributed.Client be there: "
            "client = adafw.distributed.local_client(n_workers=2) starts one on this machine."
        ) from None


class _Owner(Client):  # type: ignore[misc]
    """A client that takes its cluster with it."""

    def close(self, *arguments: Any, **options: Any) -> Any:
        """Closes both."""
        result = super().close(*arguments, **options)
        if not self.asynchronous:
            self.cluster.close()  # nothing, if it is closed
        return result
