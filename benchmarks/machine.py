"""What the numbers were measured on."""

import os
import platform
from importlib.metadata import version
from pathlib import Path


def describe() -> str:
    """Processor, cores, system, versions and load, in one line."""
    load = f", load {os.getloadavg()[0]:.1f} at the end" if hasattr(os, "getloadavg") else ""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    return (
        f"{processor()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}{load}"
    )


def processor() -> str:
    """The processor's name as Linux knows it, else what Python says."""
    file = Path("/proc/cpuinfo")
    if file.is_file():
        for line in file.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
