"""`python -m omnigraph` is the command line."""

from omnigraph.cli import main

if __name__ == "__main__":
    main()
