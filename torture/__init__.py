"""The attack on adafw as a tool: random files, runs, kills and disks, from seeds, for as long as
asked.

    python -m torture --minutes 10

Every case is a number: `python -m torture --engine libsvm --case 4711` does it again. What a case
expects is written in its engine; a case that fails is made small and written as a test.
"""
