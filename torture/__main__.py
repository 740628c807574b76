"""python -m torture: attacks for some minutes, or does one case again."""

import argparse
import sys
import tempfile
from pathlib import Path

from torture.attack import Attack, engines, once


def main() -> int:
    """Returns 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/torture"))
    parser.add_argument("--engine", action="append", default=[], choices=sorted(engines()))
    parser.add_argument("--case", type=int, help="do this case of one engine again")
    parser.add_argument("--cheap", action="store_true", help="no kills: nothing that takes seconds")
    options = parser.parse_args()
    if options.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(once(options.engine[0], options.case, options.seed, Path(folder)))
        return 0
    attack = Attack.taken_up(options.out, options.seed, tuple(options.engine), options.cheap)
    failures = attack.run(options.minutes)
    print(attack.table())
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
