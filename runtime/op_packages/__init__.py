"""The op packages that come with Runstep, one folder each; each has its extra.

They use the entry-point group `runstep.ops` like any other package: see
`runtime.framework.op_packages`. Without the extra a package's ops are known and have no kernel, and
the error of a step that reaches one names what must be installed.
"""
