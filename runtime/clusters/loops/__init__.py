"""Recurrent loops: While loops that are LSTM, GRU or simple recurrent cells, as one operation each.

`interpretation` runs the functions of a loop on forms instead of arrays (`forms`), `cells` compares
the forms with those of the cells that an engine has, `recognise` puts both together, and
`emit_loops` writes what was recognised. Names, the order of gates and how weights are cut or joined
don't matter, since only the forms of values are compared.
"""
