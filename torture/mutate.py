"""Damage: bytes changed as disks, programs and people change them."""

import io
import zipfile

import numpy as np

#: What breaks readers: borders of integers and floats, signs, separators, text that is no number.
WORDS = [
    b"", b"0", b"-0", b"1", b"-1", b"nan", b"inf", b"-inf", b"1e308", b"1e309", b"1e-320",
    b"1e-400",
    b"4294967295", b"2147483647", b"2147483648", b"9223372036854775807", b"18446744073709551616",
    b"99999999999999999", b"100000000000000000", b"1000000000000000000000", b"0.1", b".5", b"5.",
    b"1e", b"1e+", b"--1", b"1_0", b"0x10", b"1,5", b":", b"::", b"#", b"qid:1", b"qid:", b"\r\n",
    b"\n\n", b"\t", b" ", b"\v", b"\x00", b"\xff", b"\xe2\x80\x83", b"9007199254740993", b"1" * 40,
    b"0." + b"0" * 30 + b"1", b"\"", b",", b"=", b"[", b"]", b"{", b"'", b"True", b"None",
]  # fmt: skip


def damaged(content: bytes, rng: np.random.Generator, words: list[bytes] = WORDS) -> bytes:
    """One to six random changes."""
    out = bytearray(content)
    for _ in range(int(rng.integers(1, 7))):
        at = int(rng.integers(len(out) + 1))
        kind = int(rng.integers(8))
        if kind == 0 and out:  # a bit
            out[at % len(out)] ^= 1 << int(rng.integers(8))
        elif kind == 1 and out:  # a byte
            out[at % len(out)] = int(rng.integers(256))
        elif kind == 2:  # cut short
            del out[at:]
        elif kind == 3:  # a piece lost
            del out[at : at + int(rng.integers(1, 20))]
        elif kind == 4:  # a word put in
            out[at:at] = words[int(rng.integers(len(words)))]
        elif kind == 5:  # a word in the place of another
            word = words[int(rng.integers(len(words)))]
            out[at : at + int(rng.integers(1, 8))] = word
        elif kind == 6 and out:  # a piece twice
            piece = out[at : at + int(rng.integers(1, 40))]
            out[at:at] = piece
        elif kind == 7 and out:  # zeros, as after a power cut
            n = int(rng.integers(1, 60))
            out[at : at + n] = bytes(min(n, len(out) - at))
    return bytes(out)


def damaged_inside(archive: bytes, rng: np.random.Generator) -> bytes:
    """A zip file with one member damaged, missing or another's; its checksums are right."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        members = [(info.filename, file.read(info)) for info in file.infolist()]
    k = int(rng.integers(len(members)))
    name, content = members[k]
    kind = int(rng.integers(6))
    if kind == 0:
        members.pop(k)
    elif kind == 1:
        members[k] = (name, members[int(rng.integers(len(members)))][1])
    elif kind == 2:  # the numbers alone: the head of the array stays as it is
        head = content.find(b"\n") + 1
        numbers = np.frombuffer(content[head:], np.uint8).copy()
        for _ in range(int(rng.integers(1, 5)) if numbers.size else 0):
            numbers[int(rng.integers(numbers.size))] = int(rng.integers(256))
        members[k] = (name, content[:head] + numbers.tobytes())
    elif kind == 3 and content.startswith(b"\x93NUMPY"):  # another length, and a head that knows
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        other = np.resize(array, [max(0, n + int(rng.integers(-2, 3))) for n in array.shape])
        kinds = [array.dtype, np.float32, np.float64, np.int64, np.uint64, np.int32, bool, "U3"]
        kept = io.BytesIO()
        with np.errstate(all="ignore"):
            np.save(kept, other.astype(kinds[int(rng.integers(len(kinds)))], casting="unsafe")
                    if array.dtype.kind not in "U" else other)  # fmt: skip
        members[k] = (name, kept.getvalue())
    else:
        members[k] = (name, damaged(content, rng))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for member, content in members:
            file.writestr(zipfile.ZipInfo(member), content)
    return out.getvalue()
