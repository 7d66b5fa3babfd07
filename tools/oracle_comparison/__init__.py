"""Random cases answered by real TensorFlow and by this runtime, and compared.

`seeds` finds the recorded cases to start from, `mutation` changes them at random, `reference` asks
TensorFlow in a process of its own, `agreement` asks this runtime and compares.
"""
