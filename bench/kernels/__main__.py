"""Time the kernels."""

from bench.kernels.run import main

if __name__ == "__main__":
    main()
