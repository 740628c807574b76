"""Files of every format: what is read, whole and in pieces, and what is said of bad ones."""

import bz2
import gzip
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from adafw.datasets import save_parts
from adafw.io import tables
from adafw.io.libsvm import write_libsvm
from adafw.io.tables import (
    ColumnChoice,
    columns,
    delimited,
    format_of,
    read_pieces,
    read_table,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 6)) < 0.5, rng.normal(size=(50, 6)), 0.0)
    X[0, -1] = 1.0
    return X, np.where(rng.random(50) < 0.5, 1.0, -1.0)


def write(folder, name, X, y):
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / name
    kind = format_of(path)
    if kind == "libsvm":
        write_libsvm(path, X, y)
    elif kind == "csv":
        text = "a,b,c,d,e,f,target\n" + "".join(
            ",".join(repr(float(v)) for v in (*row, t)) + "\n" for row, t in zip(X, y, strict=True)
        )
        opener = gzip.open if name.endswith("gz") else open
        with opener(path, "wt") as file:
            file.write(text)
    elif kind == "parquet":
        names = {letter: X[:, j] for j, letter in enumerate("abcdef")}
        parquet.write_table(pa.table({**names, "target": y}), path)
    elif kind == "npy":
        np.save(path, np.column_stack([X, y]))
    elif "sparse" in name:
        A = sparse.csr_array(X)
        np.savez(path, data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, y=y)
    else:
        np.savez(path, X=X, y=y)
    return path


FILES = ["a.svm", "a.svm.gz", "a.libsvm.bz2", "a.csv", "a.csv.gz", "a.parquet", "a.npy", "a.npz",
         "sparse.npz"]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_every_format_reads_the_same(name, data, tmp_path, monkeypatch):
    X, y = data
    path = write(tmp_path, name, X, y)
    monkeypatch.setattr(tables, "PIECE_ROWS", 7)
    monkeypatch.setattr(tables, "PIECE_BYTES", 300)
    table = read_table(path)
    as_dense = table.X.toarray() if sparse.issparse(table.X) else table.X
    np.testing.assert_array_equal(as_dense, X)
    np.testing.assert_array_equal(table.y, y)
    assert read_table(path, dtype=np.float32).X.dtype == np.float32
    columns = ColumnChoice(n_features=6, zero_based=False, features=table.features)
    pieces = list(read_pieces(path, columns=columns, with_target=True))
    assert (len(pieces) > 1) == (not name.endswith("npz"))
    whole = np.concatenate([p.X.toarray() if sparse.issparse(p.X) else p.X for p in pieces])
    np.testing.assert_array_equal(whole, X)
    np.testing.assert_array_equal(np.concatenate([p.y for p in pieces]), y)


def test_targets_are_found_or_left_out(data, tmp_path):
    X, y = data
    path = tmp_path / "t.csv"
    rows = "\n".join(",".join(map(repr, (float(t), *map(float, r)))) for r, t in zip(X, y))  # noqa: B905
    path.write_text("label,a,b,c,d,e,f\n" + rows)
    np.testing.assert_array_equal(read_table(path, columns=ColumnChoice(target="label")).X, X)
    np.testing.assert_array_equal(read_table(path, columns=ColumnChoice(target="0")).y, y)
    wanted = ColumnChoice(features=("f", "a"), n_features=2)
    piece = next(read_pieces(path, columns=wanted))
    np.testing.assert_array_equal(piece.X, X[:, [5, 0]])
    with pytest.raises(ValueError, match="must have a target column 'z'"):
        read_table(path, columns=ColumnChoice(target="z"))
    bare = tmp_path / "bare.csv"
    bare.write_text("1,2\n3,4\n")
    assert next(read_pieces(bare, columns=ColumnChoice(n_features=2))).y is None
    assert next(read_pieces(bare, columns=ColumnChoice(n_features=1))).y.tolist() == [2, 4]
    with pytest.raises(ValueError, match="has 2 columns, the model needs 5 features"):
        next(read_pieces(bare, columns=ColumnChoice(n_features=5)))


def test_text_targets(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,kind\n1,cat\n2,dog\n\n3,cat\n")
    table = read_table(path)
    assert table.y.tolist() == ["cat", "dog", "cat"]
    assert table.features == ("x",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one sample"),
        ("a,b\n", "at least one sample"),
        ("1,2\n3\n", r"line 2: expected 2 columns, got 1"),
        ("1,2\n3,4,5\n", r"line 2: expected 2 columns, got 3"),
        ("1,2\nx,4\n", r"line 2, column 1: expected a finite number, got 'x'"),
        ("a,y\n1,2\n,4\n", r"line 3, column 1: expected a finite number, got ''"),
        ("1,2\nnan,4\n", r"line 2, column 1: expected a finite number, got 'nan'"),
        ("1,2\n1,inf\n", r"line 2, column 2: expected a finite target, got 'inf'"),
        ("a,y\n1,cat\n2,\n", r"line 3, column 2: expected a target, got ''"),
        ("5\n6\n", "at least one feature"),
        ("1_0,2\n1,2\n1_0,2\n", r"line 3, column 1: expected a finite number, got '1_0'"),
    ],
)
def test_bad_csv_is_named(text, message, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one sample"),
        ("1 2:x\n", r"line 1, column \d+: expected a number"),
        ("1 1:1\n-1 0:1 0:2\n", r"line 2, column \d+: expected a feature id above"),
        ("1 1:nan\n", "line 1: expected finite features, got nan"),
        ("# two:1\n1 1:1 2:3\n\n-1\n -1 1:1e400\n", "line 5: expected finite features, got inf"),
        ("\n1 1:2 # no\ninf 1:2\n", "line 3: expected finite targets, got inf"),
        ("1 1:1\n1 3", r"line 2, column \d+: expected ':'"),
    ],
)
def test_bad_libsvm_is_named(text, message, tmp_path):
    path = tmp_path / "bad.svm"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(path)
    if "sample" not in message:
        with pytest.raises(ValueError, match=message):
            list(read_pieces(path, columns=ColumnChoice(n_features=9)))


@pytest.mark.parametrize("name", ["a.svm.gz", "a.csv.gz", "a.parquet", "a.npy", "a.npz"])
def test_truncated_files_are_named(name, data, tmp_path):
    path = write(tmp_path, name, *data)
    content = path.read_bytes()
    for length in (1, len(content) // 2, len(content) - 3):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=str(path)):
            read_table(path)


def test_other_bad_files(data, tmp_path):
    X, y = data
    np.savez(tmp_path / "noy.npz", X=X)
    with pytest.raises(ValueError, match="must hold targets y"):
        read_table(tmp_path / "noy.npz")
    np.savez(tmp_path / "short.npz", X=X, y=y[:3])
    with pytest.raises(ValueError, match="one target a row"):
        read_table(tmp_path / "short.npz")
    np.savez(tmp_path / "nan.npz", X=X * np.nan, y=y)
    with pytest.raises(ValueError, match="finite features"):
        read_table(tmp_path / "nan.npz")
    np.save(tmp_path / "object.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"object\.npy"):
        read_table(tmp_path / "object.npy")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "missing.csv")


def test_ids_from_zero_keep_their_columns(tmp_path):
    (tmp_path / "zero.svm").write_text("1 0:1 2:5\n-1 1:1\n")
    table = read_table(tmp_path / "zero.svm")
    assert table.zero_based
    assert table.X.toarray().tolist() == [[1, 0, 5], [0, 1, 0]]
    (tmp_path / "later.svm").write_text("1 1:1\n-1 2:1\n")
    piece = next(
        read_pieces(tmp_path / "later.svm", columns=ColumnChoice(n_features=3, zero_based=True))
    )
    assert piece.X.toarray().tolist() == [[0, 1, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match="features up to number 3, the model has 2"):
        list(
            read_pieces(tmp_path / "later.svm", columns=ColumnChoice(n_features=2, zero_based=True))
        )


def test_as_many_features_as_were_said(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1 3:5\n")
    for n in (3, 7):
        found = read_table(tmp_path / "a.svm", columns=ColumnChoice(n_features=n))
        assert found.X.shape == (1, n)
    with pytest.raises(ValueError, match="features up to number 3, more than 2"):
        read_table(tmp_path / "a.svm", columns=ColumnChoice(n_features=2))


def test_the_first_piece_decides_where_ids_begin(tmp_path, monkeypatch):
    """Later pieces without an id 0 keep their columns; one that has it only later is refused."""
    monkeypatch.setattr(tables, "PIECE_BYTES", 24)
    path = tmp_path / "zero.svm"
    path.write_text("1 0:1 2:5\n" * 4 + "-1 1:1 2:3\n" * 4 + "1 2:9\n" * 9)
    pieces = list(read_pieces(path, columns=ColumnChoice(n_features=3)))
    assert len(pieces) > 4
    found = np.concatenate([piece.X.toarray() for piece in pieces])
    np.testing.assert_array_equal(found, read_table(path).X.toarray())
    assert found[-1].tolist() == [0, 0, 9]
    path.write_text("1 1:1 2:5\n" * 9 + "-1 0:1\n" * 4)
    with pytest.raises(ValueError, match="id 0 comes after lines without it"):
        list(read_pieces(path, columns=ColumnChoice(n_features=3)))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.sampled_from(["f.svm", "f.csv", "f.npy", "f.npz", "f.parquet",
                                                "f.svm.gz", "f.csv.bz2"]))  # fmt: skip
def test_any_bytes_give_a_table_or_a_sentence(tmp_path, content, name):
    path = tmp_path / name
    if name.endswith("gz"):
        content = gzip.compress(content)
    elif name.endswith("bz2"):
        content = bz2.compress(content)
    path.write_bytes(content)
    try:
        table = read_table(path)
    except ValueError as error:
        assert name in str(error)  # noqa: PT017
    else:
        assert table.X.shape[0] == len(table.y)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("0123456789.,-+e\n\"'ax ", max_size=80))
def test_any_text_as_csv(tmp_path, text):
    path = tmp_path / "f.csv"
    path.write_text(text)
    try:
        table = read_table(path)
    except ValueError as error:
        assert "f.csv" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(table.X).all()


@pytest.mark.parametrize("name", ["d.csv.gz", "d.parquet", "d.npy", "d.npz", "d.svm.gz"])
def test_damaged_bytes_give_a_table_or_a_sentence(name, data, tmp_path):
    """Whatever a reader raises at a flipped, missing or additional byte, it is told in one line."""
    write(tmp_path, name, *data)
    path = tmp_path / name
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    said = []
    for _ in range(150):
        place = int(rng.integers(len(whole)))
        change = [bytes([int(rng.integers(256))]), b"", b"\xff" * 5][int(rng.integers(3))]
        path.write_bytes(whole[:place] + change + whole[place + 1 :])
        try:
            read_table(path)
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 20
    assert all(len(words.splitlines()) == 1 for words in said)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("packed", [False, True])
def test_matrices_stored_by_rows_or_columns_are_read_in_pieces(
    tmp_path, order, packed, monkeypatch
):
    monkeypatch.setattr(tables, "PIECE_ROWS", 4)
    X = np.asarray(np.random.default_rng(0).normal(size=(11, 3)), order=order)
    path = tmp_path / ("x.npy.gz" if packed else "x.npy")
    opener = gzip.open if packed else open
    with opener(path, "wb") as file:
        np.save(file, X)
    pieces = list(read_pieces(path, "npy", ColumnChoice(), np.dtype(float), with_target=True))
    assert [len(piece.y) for piece in pieces] == [4, 4, 3]
    np.testing.assert_array_equal(np.concatenate([piece.X for piece in pieces]), X[:, :2])
    np.testing.assert_array_equal(np.concatenate([piece.y for piece in pieces]), X[:, 2])


def test_targets_may_be_text(tmp_path):
    path = tmp_path / "text.npz"
    for y in (np.array(["no", "yes"]), np.array([b"no", b"yes"])):
        np.savez(path, X=np.eye(2), y=y)
        assert read_table(path).y.tolist() == ["no", "yes"]
    np.savez(path, X=np.eye(2), y=np.array([1, 2]))
    assert read_table(path).y.dtype.kind == "i"  # whole numbers stay whole
    for y, told in (
        (np.array([1j, 2]), "must hold numbers or text"),
        (np.array([1.0, np.nan]), "must have finite targets"),
        (np.ones(3), "one target a row: 2 rows"),
    ):
        np.savez(path, X=np.eye(2), y=y)
        with pytest.raises(ValueError, match=told):
            read_table(path)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"X": np.ones(3), "y": np.ones(3)}, "must hold a matrix of numbers X"),
        ({"X": np.array([["a"]]), "y": np.ones(1)}, "must hold a matrix of numbers X"),
        ({"X": np.ones((0, 3)), "y": np.ones(0)}, "at least one sample"),
        ({"X": np.array([[np.inf]]), "y": np.ones(1)}, "must have finite features"),
        ({"y": np.ones(1)}, r"must hold X \(and y\)"),
        ({"X": np.eye(2)}, "must hold targets y beside X"),
        ({"data": np.ones(1), "indices": np.array([5]), "indptr": np.array([0, 1]),
          "shape": np.array([1, 2]), "y": np.ones(1)}, "must hold a sparse matrix in CSR form"),
    ],
)  # fmt: skip
def test_archives_that_hold_something_else(tmp_path, arrays, told):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=told):
        read_table(tmp_path / "a.npz")


def test_targets_of_pieces_are_text_if_any_of_them_is():
    numbers, words = np.array([1.0, 2.5]), np.array(["a", "b"])
    np.testing.assert_array_equal(columns.joined_targets([numbers, numbers]), [1, 2.5, 1, 2.5])
    assert columns.joined_targets([numbers, words]).tolist() == ["1", "2.5", "a", "b"]


def test_which_column_is_the_target():
    names = ["a", "b", "1"]
    where = [("b", 1), ("1", 2), ("0", 0), ("-1", 2), (None, 2)]
    for wanted, position in where:
        assert columns._position(wanted, names, 3, "f", True) == position
    assert columns._position("1", None, 3, "f", True) == 1
    assert columns._position(None, names, 3, "f", False) is None
    for wanted in ("c", "3", "-4"):
        assert columns._position(wanted, names, 3, "f", False) is None
        with pytest.raises(ValueError, match="must have a target column"):
            columns._position(wanted, names, 3, "f", True)


def test_parts_in_memory_are_looked_at_for_what_is_not_finite(tmp_path):
    """Those that are streamed are not: that would be a pass over all of them."""
    folder = tmp_path / "parts"
    save_parts(folder, sparse.csr_array(np.eye(3)), np.ones(3))
    assert read_table(folder, "parts").X.shape == (3, 3)
    np.save(folder / "data.npy", [1.0, np.nan, 1.0])
    with pytest.raises(ValueError, match="must have finite features, got NaN or infinity"):
        read_table(folder, "parts")


@pytest.mark.parametrize("name", ["a.tsv", "A.TSV", "a.tsv.gz"])
def test_a_name_says_that_tabs_stand_between_cells(tmp_path, name):
    text = b"a\tb\ty\n1\t2\t0\n3\t4\t1\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    table = read_table(tmp_path / name)
    assert table.features == ("a", "b")
    assert table.X.tolist() == [[1, 2], [3, 4]]
    assert table.y.tolist() == [0, 1]


def test_lines_are_those_an_editor_shows(tmp_path):
    """Blank lines count, and a cell may be of several lines; so do pieces that went before."""
    path = tmp_path / "f.csv"
    path.write_text('a,y\n\n1,2\n"3",4\n  \n"\n5",6\n7,8,9\n')
    with pytest.raises(ValueError, match="line 8: expected 2 columns, got 3"):
        read_table(path)
    path.write_text("a,b,y\n" + "1,2,3\n" * 9 + "1,x,3\n")
    for rows in (2, 3, 100):
        with pytest.raises(ValueError, match="line 11, column 2: expected a finite number"):
            list(delimited.pieces(path, ColumnChoice(), np.dtype(float), True, rows))
    path.write_text("a,y\n1,2\n1," + "2" * 140_000 + "\n")
    with pytest.raises(ValueError, match=r"f\.csv, line 3: field larger than field limit"):
        read_table(path)
    path.write_bytes("a,y\n1,grün\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"f\.csv must be UTF-8 text, got other bytes"):
        read_table(path)


def test_one_column_is_a_header_if_it_is_no_number(tmp_path):
    path = tmp_path / "f.csv"
    features = ColumnChoice(all_features=True)
    path.write_text("1\n2\n")
    assert read_table(path, columns=features).X.tolist() == [[1], [2]]
    assert read_table(path, columns=features).features is None
    path.write_text(" height \n2\n")
    found = read_table(path, columns=features)
    assert (found.X.tolist(), found.y, found.features) == ([[2]], None, ("height",))
    path.write_text("1,2,red\n3,4,blue\n")  # a target may be a word where there is no header
    assert read_table(path).y.tolist() == ["red", "blue"]


def test_files_without_targets_are_read_in_pieces(data, tmp_path, monkeypatch):
    X, _ = data
    monkeypatch.setattr(tables, "PIECE_ROWS", 7)
    np.save(tmp_path / "x.npy", X)
    table = read_table(tmp_path / "x.npy", columns=ColumnChoice(all_features=True))
    np.testing.assert_array_equal(table.X, X)
    assert table.y is None
    np.save(tmp_path / "x.npy", X[:0])
    with pytest.raises(ValueError, match=r"x\.npy must hold at least one sample, got none"):
        read_table(tmp_path / "x.npy")


def test_formats(tmp_path):
    """By the name's last ending that is not one of packing; a directory holds parts."""
    (tmp_path / "folder.csv").mkdir()
    names = {
        "a.svm": "libsvm", "a.libsvm.XZ": "libsvm", "a.svmlight": "libsvm", "a.TXT": "libsvm",
        "a.dat.gz": "libsvm", "a.CSV": "csv", "a.tsv.bz2": "csv", "a.parquet": "parquet",
        "a.pq": "parquet", "a.npy": "npy", "a.csv.npz": "npz", "a": "libsvm", "a.gz": "libsvm",
        "a.unknown": "libsvm", "folder.csv": "parts",
    }  # fmt: skip
    assert {name: format_of(tmp_path / name) for name in names} == names
    assert format_of(tmp_path / "a.csv", "npy") == "npy"
    with pytest.raises(ValueError, match=r"format must be one of libsvm, csv, .* parts, got 'xls'"):
        next(read_pieces("a.csv", "xls"))


def test_parquet_that_cannot_be_used_is_named(tmp_path, monkeypatch):
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "f.parquet"
    for columns_, told in (
        ({"a": ["x", "y"], "t": [1, 2]}, "column 'a': expected numbers, got string"),
        ({"a": [1, None], "t": [1, 2]}, "column 'a': expected a value in every row, got a gap"),
        ({"a": [1.0, np.inf], "t": [1, 2]}, "column 'a': expected finite numbers, got NaN or inf"),
        ({"a": [1, 2], "t": [1.0, np.nan]}, "column 't': expected finite numbers"),
        ({"a": [1, 2], "t": ["x", None]}, "column 't': expected a value in every row"),
    ):
        parquet.write_table(pa.table(columns_), path)
        with pytest.raises(ValueError, match=rf"f\.parquet, {told}"):
            read_table(path)
    parquet.write_table(pa.table({"a": [1, 2], "b": [True, False], "t": ["x", "y"]}), path)
    table = read_table(path, dtype=np.float32)
    assert (table.X.tolist(), table.X.dtype) == ([[1, 1], [2, 0]], np.float32)
    assert table.y.tolist() == ["x", "y"]
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "missing.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"Parquet files need pyarrow; install .*'adafw\[io\]'"):
        read_table(path)


def test_pieces_without_samples_are_left_out(tmp_path, monkeypatch):
    """Ids are counted from the first line that has any."""
    monkeypatch.setattr(tables, "PIECE_BYTES", 16)
    path = tmp_path / "f.svm"
    path.write_text("# head of file\n\n\n\n" + "# more of that\n" * 3 + "1 1:2 2:3\n" * 3)
    found = [piece.X.toarray().tolist() for piece in read_pieces(path, columns=ColumnChoice())]
    assert found == [[[2, 3]]] * 3
    path.write_text("1 1:2 2:3\n" * 3 + "\n# none\n" * 4 + "1 1:2 2:nan\n")
    with pytest.raises(ValueError, match="line 12: expected finite features, got nan"):
        list(read_pieces(path, columns=ColumnChoice(n_features=2)))


def test_rows_without_ids_have_no_columns_but_one(tmp_path):
    (tmp_path / "f.svm").write_text("1\n-1\n")
    assert next(read_pieces(tmp_path / "f.svm")).X.shape == (2, 1)
    assert read_table(tmp_path / "f.svm").X.shape == (2, 1)


def test_widths_that_do_not_fit_the_model(tmp_path):
    """Sparse rows may lack their last columns, dense ones may not; neither may have more."""
    np.savez(tmp_path / "a.npz", X=np.eye(3), y=np.ones(3))
    with pytest.raises(ValueError, match=r"a\.npz has 3 features, the model has 4"):
        next(read_pieces(tmp_path / "a.npz", columns=ColumnChoice(n_features=4)))
    for kind, X in (("dense", np.eye(3)), ("csr", sparse.csr_array(np.eye(3)))):
        folder = tmp_path / kind
        save_parts(folder, X, np.ones(3))
        for read in (read_table, lambda *a, **k: next(read_pieces(*a, **k))):
            assert read(folder, columns=ColumnChoice(n_features=3)).X.shape == (3, 3)
            with pytest.raises(ValueError, match=f"{kind} has 3 features, the model has 2"):
                read(folder, columns=ColumnChoice(n_features=2))
            if kind == "csr":
                wide = read(folder, columns=ColumnChoice(n_features=5)).X
                np.testing.assert_array_equal(wide.toarray(), np.eye(3, 5))
            else:
                with pytest.raises(ValueError, match="has 3 features, the model needs 5"):
                    read(folder, columns=ColumnChoice(n_features=5))


def test_parts_that_are_not_finite_are_found_in_pieces_and_targets(tmp_path):
    folder = tmp_path / "parts"
    save_parts(folder, np.eye(3), np.ones(3))
    np.save(folder / "y.npy", [1.0, np.inf, 1.0])
    for read in (read_table, lambda path: list(read_pieces(path))):
        with pytest.raises(ValueError, match="must have finite targets, got NaN or infinity"):
            read(folder)
    save_parts(folder, np.eye(3), np.ones(3))
    np.save(folder / "data.npy", np.where(np.eye(3) > 0, np.nan, 0))
    with pytest.raises(ValueError, match="must have finite features, got NaN or infinity"):
        list(read_pieces(folder))


@pytest.mark.parametrize(("first", "last"), [(1, 1000), (0, 999)])
def test_features_must_fit_into_memory_as_four_vectors(tmp_path, monkeypatch, first, last):
    """x, a gradient, a vertex and a copy, eight bytes a feature; the id is as the file has it."""
    path = tmp_path / "f.svm"
    path.write_text(f"1 {first}:1\n-1 {last}:1\n")
    monkeypatch.setattr(tables.libsvm, "machine_bytes", lambda: 32_000)
    assert read_table(path).X.shape == (2, 1000)
    monkeypatch.setattr(tables.libsvm, "machine_bytes", lambda: 31_999)
    with pytest.raises(ValueError, match=rf"line 2: feature id {last} asks for 1000 coefficients"):
        read_table(path)
    assert read_table(path, columns=ColumnChoice(n_features=2000)).X.shape == (2, 2000)


def test_blanks_around_words_mean_nothing(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(" a , kind \n1, red\n 2 ,red \n")
    table = read_table(path, columns=ColumnChoice(target="kind"))
    assert table.features == ("a",)
    assert table.X.tolist() == [[1], [2]]
    assert table.y.tolist() == ["red", "red"]
    path.write_text("a,kind\n1,red\n2,  \n")
    with pytest.raises(ValueError, match="line 3, column 2: expected a target, got ''"):
        read_table(path)


@pytest.mark.parametrize("rows", [2, 100])
def test_labels_are_told_apart_in_any_pieces(tmp_path, monkeypatch, rows):
    """Some pieces hold numbers alone, and are read as numbers before a word comes."""
    monkeypatch.setattr(tables, "PIECE_ROWS", rows)
    path, labels = tmp_path / "f.csv", ["1234567", "1234568", "0.1", "-2", "1e-300", "word"]
    path.write_text("a,kind\n" + "".join(f"1,{label}\n" for label in labels))
    assert read_table(path, columns=ColumnChoice(target="kind")).y.tolist() == labels
