"""RCV1-v2 where ADAFW_DATA names its folder, else generated rows of its shape."""

from data import rcv1


def load():
    return rcv1()
