"""Which versions are at work: what a report of a problem should begin with."""

#: Packages that adafw needs, and those it uses where they are installed.
NEEDED = ("numpy", "scipy", "numba", "scikit-learn", "click", "rich", "pooch")
USED = ("torch", "matplotlib", "pandas", "pyarrow", "tensorboard")


def versions() -> dict[str, str | None]:
    """Name -> version of adafw, Python, the system and all packages; None: not installed."""
    import platform
    from importlib import metadata

    from adafw import __version__

    found: dict[str, str | None] = {"adafw": __version__, "python": platform.python_version()}
    found["system"] = f"{platform.system()} {platform.machine()}"
    for name in (*NEEDED, *USED):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def show_versions() -> None:
    """Prints the versions of adafw, Python and every package it uses; paste it into a report."""
    print("\n".join(f"{name:<14} {version or '-'}" for name, version in versions().items()))
