"""`python -m streamgp`: the command line, where the `streamgp` script is not on the path."""

from streamgp.cli.main import main

if __name__ == "__main__":
    main()
