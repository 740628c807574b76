"""A process that does cases: `python -m torture.worker PLAN`."""

import json
import sys

from torture.attack import work

if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
