"""`python -m turnwal` is the command line."""

from turnwal.cli import main

if __name__ == "__main__":
    main()
