"""`python -m runstep`: the same as the command `runstep`."""

from runstep.launcher import runstep

if __name__ == "__main__":
    runstep()
