"""Files in and out: LIBSVM text, tables, mapped parts; files written whole or not at all.

Users meet the readers and writers as `adafw.datasets.read_libsvm` and its kin.
"""
