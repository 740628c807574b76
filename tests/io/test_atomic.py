import pytest

from adafw.io.atomic import replacing, write_text


def fail_half_way(target, folder=False):
    with replacing(target, folder=folder) as partial:
        (partial / "c" if folder else partial).write_text("half")
        raise RuntimeError


def test_a_failure_keeps_the_old_file_and_leaves_nothing(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError):
        fail_half_way(path)
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]
    write_text(path, "new")
    assert path.read_text() == "new"


def test_directories(tmp_path):
    target = tmp_path / "folder"
    for content in ("a", "b"):
        with replacing(target, folder=True) as partial:
            (partial / content).write_text(content)
    assert [p.name for p in target.iterdir()] == ["b"]
    with pytest.raises(RuntimeError):
        fail_half_way(target, folder=True)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    assert [p.name for p in target.iterdir()] == ["b"]
