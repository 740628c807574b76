"""`python -m adafw` is the command line."""

from adafw.cli import main

if __name__ == "__main__":
    main()
