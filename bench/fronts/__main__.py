"""Measure the protocol fronts."""

from bench.fronts.run import main

if __name__ == "__main__":
    main()
