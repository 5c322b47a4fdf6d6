"""`python -m iodock`."""

from iodock.cli import main

if __name__ == "__main__":
    main()
