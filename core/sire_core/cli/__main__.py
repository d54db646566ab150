"""`python -m sire_core.cli`: the `sire` command where its script is not on the path."""

from sire_core.cli import main

if __name__ == "__main__":
    main()
