"""``python -m vimbank``: the same as the command ``vimbank``."""

from vimbank.cli.main import main

if __name__ == "__main__":
    main()
