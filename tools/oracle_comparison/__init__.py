"""Comparison of TensorFlow's and this runtime's answers to random cases.

`seeds` finds the recorded cases to start from, `mutation` changes them at random, `reference` runs
them in a TensorFlow process, `agreement` runs them in this runtime and compares the answers.
"""
