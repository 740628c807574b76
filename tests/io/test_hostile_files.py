"""Files made to harm: archives that swell, headers that lie, numbers out of range."""

import io
import json
import struct
import zipfile
import zlib

import numpy as np
import pytest
from scipy import sparse

from adafw import memory
from adafw.datasets import load_parts, read_libsvm, save_parts
from adafw.io import arrays
from adafw.io.arrays import read_npz, write_npz
from adafw.io.tables import read_table
from adafw.solver import State


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive(path, members, packed=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packed) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


def test_unknown_members_are_never_unpacked(tmp_path):
    """Megabytes of zeros under a name that nobody asked for costs nothing."""
    path = tmp_path / "d.npz"
    np.savez(path, X=np.ones((2, 3)), y=np.ones(2))
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file,
        file.open("bomb.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(8):
            member.write(bytes(1 << 22))
    import tracemalloc

    tracemalloc.start()
    table = read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table.X.shape == (2, 3)
    assert peak < 1 << 21


def test_what_would_not_fit_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = archive(
        tmp_path / "d.npz", [("X.npy", npy(np.zeros((1000, 1000)))), ("y.npy", npy(np.zeros(1000)))]
    )
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(arrays, "machine_bytes", lambda: 1_000_000)
    with pytest.raises(ValueError, match=r"d\.npz must unpack to at most 1 MB, got 8\.01 MB"):
        read_table(path)


def test_own_files_never_unpack_to_more_than_they_are(tmp_path):
    path = archive(
        tmp_path / "s.npz", [("format.npy", npy(np.array(2))), ("x.npy", npy(np.zeros(10**6)))]
    )
    with pytest.raises(ValueError, match=r"s\.npz must unpack to at most .* kB, got 8 MB"):
        State.load(path)


@pytest.mark.parametrize("declared", [10, 10**9, 10**18])
def test_a_header_that_lies_about_its_size(tmp_path, declared):
    """Nothing of the declared size is made: the bytes are not there."""
    content = bytearray(npy(np.arange(4.0).reshape(2, 2)))
    shape = f"({declared}, 2)"
    at = content.find(b"(2, 2)")
    header_end = content.find(b"\n")
    head = content[:at] + shape.encode() + content[at + 6 : header_end]
    head = head[: header_end - 0]  # the padding makes room
    head = bytes(head.rstrip(b" ")).ljust(header_end, b" ")[:header_end]
    lying = head + bytes(content[header_end:])
    (tmp_path / "d.npy").write_bytes(lying)
    with pytest.raises(ValueError, match=r"d\.npy must be a whole \.npy file"):
        read_table(tmp_path / "d.npy")
    archive(tmp_path / "d.npz", [("X.npy", lying), ("y.npy", npy(np.ones(2)))])
    with pytest.raises(ValueError, match="another size than its header says"):
        read_table(tmp_path / "d.npz")


def test_a_directory_that_lies_about_sizes(tmp_path):
    """The size in the archive's directory is made smaller than what is packed."""
    content = npy(np.zeros((1000, 100)))
    path = archive(tmp_path / "d.npz", [("X.npy", content)])
    data = bytearray(path.read_bytes())
    data = data.replace(struct.pack("<I", len(content)), struct.pack("<I", 300))
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"d\.npz must be a whole \.npz file"):
        read_table(path)


def test_two_members_of_one_name(tmp_path):
    path = tmp_path / "d.npz"
    with pytest.warns(UserWarning, match="Duplicate"):
        archive(path, [("X.npy", npy(np.ones((2, 2)))), ("X.npy", npy(np.zeros((2, 2))))])
    with pytest.raises(ValueError, match="must hold one array 'X', got two"):
        read_table(path)


def test_objects_are_never_loaded(tmp_path):
    class Evil:
        def __reduce__(self):
            return (exec, ("raise SystemExit('loaded')",))

    np.savez(tmp_path / "d.npz", X=np.array([[Evil()]], dtype=object), y=np.ones(1))
    np.save(tmp_path / "d.npy", np.array([[Evil()]], dtype=object))
    for name in ("d.npz", "d.npy"):
        with pytest.raises(ValueError, match=f"{name} must be a whole"):
            read_table(tmp_path / name)


def test_archives_are_read_as_numpy_reads_them(tmp_path):
    rng = np.random.default_rng(0)
    made = {
        "a": rng.standard_normal((3, 4)), "b": np.asfortranarray(rng.standard_normal((3, 4))),
        "c": np.array(5), "d": np.array(["x", "longer"]), "e": np.empty((0, 3), np.int32),
        "f": rng.integers(0, 9, 5).astype(">i8"),
    }  # fmt: skip
    write_npz(tmp_path / "a.npz", made)
    found = read_npz(tmp_path / "a.npz", lambda name: name != "a", packed=False)
    assert set(found) == set(made) - {"a"}
    for name, array in found.items():
        assert array.dtype == made[name].dtype
        np.testing.assert_array_equal(array, made[name])
        assert array.flags.writeable
    assert found["b"].flags.f_contiguous


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [">f4", "<f8", "i2", "?"])
def test_npy_files_of_any_order_and_type(tmp_path, monkeypatch, order, dtype):
    from adafw.io import tables

    monkeypatch.setattr(tables, "PIECE_ROWS", 7)
    matrix = np.asarray(np.random.default_rng(1).integers(0, 2, (40, 5)), dtype=dtype, order=order)
    np.save(tmp_path / "d.npy", matrix)
    table = read_table(tmp_path / "d.npy")
    np.testing.assert_array_equal(table.X, matrix[:, :-1])
    np.testing.assert_array_equal(table.y, matrix[:, -1])


def parts(folder, **changes):
    A = sparse.random_array((30, 8), density=0.5, rng=np.random.default_rng(0), format="csr")
    save_parts(folder, A, np.ones(30))
    for name, change in changes.items():
        if name == "manifest":
            words = json.loads((folder / "manifest.json").read_text())
            (folder / "manifest.json").write_text(json.dumps(change(words)))
        else:
            np.save(folder / f"{name}.npy", change(np.load(folder / f"{name}.npy").copy()))
    return folder


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": put(3, 8)}, r"indices\.npy must hold column numbers from 0 to 7"),
        ({"indices": put(-1, -1)}, r"indices\.npy must hold column numbers from 0 to 7"),
        ({"indices": lambda a: a.astype(np.float64)}, r"indices\.npy must hold int32 or int64"),
        ({"indptr": put(0, 1)}, r"indptr\.npy must ascend from 0"),
        ({"indptr": put(5, 10**6)}, r"indptr\.npy must ascend from 0"),
        ({"indptr": put(-1, 10**9)}, r"data\.npy must hold float64 of shape"),
        ({"indptr": lambda a: a[:-1]}, r"indptr\.npy must hold int64 of shape \(31,\)"),
        ({"y": lambda a: a.astype(str)}, r"y\.npy must hold numbers of shape"),
        ({"manifest": lambda w: {**w, "shape": [30, -8]}}, "must be a manifest of parts"),
        ({"manifest": lambda w: {**w, "shape": [30]}}, "must be a manifest of parts"),
        ({"manifest": lambda w: {**w, "shape": [0, 8]}}, "must be a manifest of parts"),
        ({"manifest": lambda w: {**w, "shape": [30, 8.0]}}, "must be a manifest of parts"),
        ({"manifest": lambda w: {**w, "dtype": "object"}}, "must be a manifest of parts"),
        ({"manifest": lambda w: {**w, "kind": "cube"}}, "must be a manifest of parts"),
        ({"manifest": lambda w: [w]}, "must have parts of format 1, got None"),
    ],
)  # fmt: skip
def test_parts_that_would_lead_kernels_astray(tmp_path, changes, message):
    folder = parts(tmp_path / "parts", **changes)
    with pytest.raises(ValueError, match=message):
        load_parts(folder)


def test_parts_with_broken_files(tmp_path):
    folder = parts(tmp_path / "parts")
    (folder / "data.npy").write_bytes((folder / "data.npy").read_bytes()[:200])
    with pytest.raises(ValueError, match=r"data\.npy must be a whole \.npy file"):
        load_parts(folder)
    (folder / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="must be a manifest of parts"):
        load_parts(folder)


@pytest.mark.parametrize("digits", range(16, 30))
def test_ids_of_many_digits_are_refused_not_misread(tmp_path, digits):
    """10^17 and what begins like it, such as 100000000000000000999."""
    path = tmp_path / "d.svm"
    for number in (10 ** (digits - 1), 10 ** (digits - 1) + 9, 10**digits - 1):
        path.write_text(f"1 {number}:1\n")
        if number < 10**17:
            assert read_libsvm(path)[0].shape == (1, number)
        else:
            with pytest.raises(ValueError, match="line 1, column 3: expected a feature id below"):
                read_libsvm(path)
        path.write_text(f"1 qid:{number} 1:1\n")
        if number < 10**17:
            assert read_libsvm(path, query_id=True)[2].tolist() == [number]
        else:
            with pytest.raises(ValueError, match="expected a query id"):
                read_libsvm(path)


@pytest.mark.parametrize(("zero_based", "column"), [(True, 2**31 - 1), (False, 2**31 - 2)])
def test_the_largest_id_of_32_bits(tmp_path, zero_based, column):
    path = tmp_path / "d.svm"
    path.write_text(f"1 1:2 {2**31 - 1}:3\n")
    A, _ = read_libsvm(path, zero_based=zero_based)
    assert A.shape == (1, column + 1)
    assert A.indices.tolist() == [1 if zero_based else 0, column]
    assert A.indices.dtype == np.int64  # 2^31 columns are a number that scipy must hold, too
    assert A.sum() == 5


def test_one_huge_id_is_named_with_its_line(tmp_path):
    path = tmp_path / "d.svm"
    path.write_text("1 1:1\n# 1000000000000000:1\n-1 2:1 1000000000000000:2\n1 3:1\n")
    message = r"d\.svm, line 3: feature id 1000000000000000 asks for 1000000000000000 coefficients"
    with pytest.raises(ValueError, match=message) as error:
        read_table(path)
    assert "3.2e+04 TB of memory" in str(error.value)
    assert read_libsvm(path)[0].shape[1] == 10**15  # as data, it is fine


def test_sizes_for_people():
    assert [memory.readable(n) for n in (0, 999, 1000, 17.2e9, 3.2e13)] == [
        "0 bytes", "999 bytes", "1 kB", "17.2 GB", "32 TB",
    ]  # fmt: skip
    assert 1 << 20 < memory.machine_bytes() < 1 << 50


def test_checksums_are_compared(tmp_path):
    content = npy(np.ones((2, 2)))
    members = [("X.npy", content), ("y.npy", npy(np.ones(2)))]
    path = archive(tmp_path / "d.npz", members, zipfile.ZIP_STORED)
    data = path.read_bytes()
    assert struct.pack("<I", zlib.crc32(content)) in data
    path.write_bytes(data.replace(content, content[:-1] + b"\x40"))
    with pytest.raises(ValueError, match=r"must be a whole \.npz file"):
        read_table(path)


def test_npy_files_of_older_and_larger_headers(tmp_path):
    """Format 2.0 is for long headers; Python 2 wrote its whole numbers with an L."""
    matrix = np.arange(6.0).reshape(2, 3)
    path = tmp_path / "d.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array(file, matrix, version=(2, 0))
    assert read_table(path).X.tolist() == [[0, 1], [3, 4]]
    old = npy(matrix).replace(b"(2, 3), }  ", b"(2L, 3L), }")
    assert old != npy(matrix)
    path.write_bytes(old)
    assert read_table(path).X.tolist() == [[0, 1], [3, 4]]
    with open(path, "wb") as file:
        np.lib.format.write_array(file, matrix, version=(3, 0))
    with pytest.raises(ValueError, match=r"d\.npy must be a whole .*format \(3, 0\) are not read"):
        read_table(path)


@pytest.mark.parametrize("array", [np.ones(3), np.ones((2, 2, 2)), np.ones((2, 2)) * 1j])
def test_npy_files_of_something_else_than_a_matrix_of_numbers(tmp_path, array):
    np.save(tmp_path / "d.npy", array)
    with pytest.raises(ValueError, match=r"d\.npy must hold a matrix of numbers"):
        read_table(tmp_path / "d.npy")


def test_long_matrices_are_read_in_bounded_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_AT_ONCE", 100)
    matrix = np.random.default_rng(0).normal(size=(50, 3))
    np.save(tmp_path / "d.npy", matrix)
    np.testing.assert_array_equal(read_table(tmp_path / "d.npy").X, matrix[:, :2])


@pytest.mark.parametrize("stream", [False, True])
def test_every_column_number_of_parts_is_looked_at(tmp_path, monkeypatch, stream):
    monkeypatch.setattr("adafw.io.parts.CHUNK", 4)
    folder = tmp_path / "parts"
    save_parts(folder, sparse.csr_array(np.ones((3, 3))), np.ones(3))
    good = np.load(folder / "indices.npy")
    for place in range(9):
        for wrong in (-1, 3):
            np.save(folder / "indices.npy", np.where(np.arange(9) == place, wrong, good))
            with pytest.raises(ValueError, match="must hold column numbers from 0 to 2, got"):
                load_parts(folder, stream=stream)
    np.save(folder / "indices.npy", good)
    assert load_parts(folder, stream=stream)[0].nnz == 9
