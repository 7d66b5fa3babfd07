"""Run the measurement of the capacity formula."""

from bench.capacity.run import main

if __name__ == "__main__":
    main()
