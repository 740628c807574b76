from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from adafw import datasets
from adafw.datasets import DataMissing
from adafw.experiments.networks.data import SPLITS, load, mapped
from adafw.experiments.networks.sources import _pick_texts, _windows

NETWORKS = {"imdb": "ImdbNet", "cifar10": "CifarNet"}


@pytest.mark.parametrize("name", NETWORKS)
def test_missing_data_are_named_or_stood_in_for(name, tmp_path, monkeypatch):
    monkeypatch.setenv("ADAFW_DATA", str(tmp_path))
    with pytest.raises(DataMissing, match=f"{name}.*npz.*ADAFW_DATA"):
        load({"name": name}, NETWORKS[name])
    about = load({"name": name, "source": "any"}, NETWORKS[name]).about
    assert about["is_stand_in"]
    assert "STAND-IN: generated" in about["label"]


def test_parts_of_the_data_say_so_and_hold_all_classes(tmp_path):
    table = {"name": "cifar10", "source": "stand-in", "rows": 300, "test_rows": 100}
    data = load(table, "CifarNet")
    assert data.about["shape"] == [300, 100]
    assert "300 + 100 of" in data.about["label"]
    assert set(data.train["y"]) == set(range(10))
    assert data.train["x"].shape == (300, 3, 32, 32)
    assert np.array_equal(data.train["x"], load(table, "CifarNet").train["x"])
    data.save(tmp_path / "parts")
    for split in SPLITS:
        back = mapped(tmp_path / "parts", split)
        assert back.keys() == getattr(data, split).keys()
        assert all(np.array_equal(back[k], v) for k, v in getattr(data, split).items())


def test_texts_are_picked_whole():
    texts = [[1, 2, 3], [4], [], [5, 6]]
    arrays = {
        "ids": np.array([word for text in texts for word in text]),
        "offsets": np.array([0, 3, 4, 4, 6]), "y": np.array([0, 1, 0, 1]),
    }  # fmt: skip
    rows = np.array([3, 2, 0])
    some = _pick_texts(arrays, rows)
    starts = some["offsets"]
    assert [some["ids"][a:b].tolist() for a, b in pairwise(starts)] == [texts[i] for i in rows]
    assert some["y"].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("table", "network", "message"),
    [
        ({"name": "mnist"}, "ImdbNet", "data of a network must be one of imdb, cifar10"),
        ({"name": "imdb"}, "CifarNet", "network of imdb must be ImdbNet"),
        ({"name": "imdb", "source": "web"}, "ImdbNet", "source must be auto, any or stand-in"),
        ({"name": "imdb", "row": 3}, "ImdbNet", "got 'row'"),
        ({"name": "imdb", "source": "stand-in", "rows": 0}, "ImdbNet", "rows must be an integer"),
    ],
)
def test_what_is_refused(table, network, message):
    with pytest.raises(ValueError, match=message):
        load(table, network)


def texts(rng):
    """Two splits of reviews, of 4 and 3 texts."""
    made = {}
    for split, lengths in (("train", [2, 3, 1, 2]), ("test", [1, 2, 2])):
        made[f"ids_{split}"] = rng.integers(1, 99, size=sum(lengths))
        made[f"offsets_{split}"] = np.cumsum([0, *lengths])
        made[f"y_{split}"] = rng.integers(0, 2, size=len(lengths))
    return SimpleNamespace(**made)


def images(rng, *shape):
    """Two splits of images of bytes, of 5 and 3 images."""
    return SimpleNamespace(**{
        name: rng.integers(0, 256, size=size, dtype=np.uint8)
        for split, m in (("train", 5), ("test", 3))
        for name, size in ((f"x_{split}", (m, *shape)), (f"y_{split}", m))
    })  # fmt: skip


def missing():
    raise DataMissing("not there")


def test_files_are_taken_as_the_networks_want_them(monkeypatch):
    rng = np.random.default_rng(0)
    reviews, colour, grey = texts(rng), images(rng, 32, 32, 3), images(rng, 28, 28, 1)
    monkeypatch.setattr(datasets, "imdb", lambda: reviews)
    monkeypatch.setattr(datasets, "cifar10", lambda: colour)
    monkeypatch.setattr(datasets, "fashion_mnist", lambda: grey)
    data = load({"name": "imdb"}, "ImdbNet")
    assert (data.about["is_stand_in"], data.about["shape"]) == (False, [4, 3])
    assert data.about["label"] == "IMDB (4 to train, 3 to test)"
    for key in ("ids", "offsets", "y"):
        np.testing.assert_array_equal(data.test[key], getattr(reviews, f"{key}_test"))
    x = load({"name": "cifar10"}, "CifarNet").train["x"]
    assert x.shape == (5, 3, 32, 32)
    assert x[4, 2, 7, 30] == colour.x_train[4, 7, 30, 2]
    x = load({"name": "fashion", "source": "any"}, "FashionNet").test["x"]
    np.testing.assert_array_equal(x, grey.x_test[..., 0])


def test_a_part_of_files_stands_in_for_them(monkeypatch):
    colour = images(np.random.default_rng(0), 32, 32, 3)
    colour.y_train = np.arange(5)
    monkeypatch.setattr(datasets, "cifar10", lambda: colour)
    data = load({"name": "cifar10", "rows": 4}, "CifarNet")
    assert data.about["is_stand_in"]
    assert data.about["label"].endswith(
        "STAND-IN: colour images in ten classes, 4 + 3 of 5 + 3 drawn at random"
    )
    assert len(set(data.train["y"])) == 4
    assert data.train["y"].tolist() != [0, 1, 2, 3]  # the first ones may be all of a kind
    np.testing.assert_array_equal(
        data.train["x"], colour.x_train[data.train["y"]].transpose(0, 3, 1, 2)
    )
    whole = load({"name": "cifar10", "rows": 5, "test_rows": 9}, "CifarNet")
    assert not whole.about["is_stand_in"]
    assert whole.train["y"].tolist() == [0, 1, 2, 3, 4]  # all of them stay in their order
    assert load({"name": "cifar10", "test_rows": 2}, "CifarNet").about["shape"] == [5, 2]


def test_similar_data_stand_in_where_any_will_do(monkeypatch):
    colour = images(np.random.default_rng(0), 32, 32, 3)
    monkeypatch.setattr(datasets, "cifar10", lambda: colour)
    monkeypatch.setattr(datasets, "fashion_mnist", missing)
    with pytest.raises(DataMissing, match="not there"):
        load({"name": "fashion"}, "FashionNet")
    data = load({"name": "fashion", "source": "any"}, "FashionNet")
    assert data.about["is_stand_in"]
    assert "STAND-IN: CIFAR-10 in grey" in data.about["label"]
    r, g, b = colour.x_test[1, 2 + 3, 2 + 8].astype(float)
    assert data.test["x"].shape == (3, 28, 28)
    assert data.test["x"][1, 3, 8] == round(0.299 * r + 0.587 * g + 0.114 * b)
    mean = (colour.x_test[:, 2:-2, 2:-2] @ [0.299, 0.587, 0.114]).mean()
    assert data.test["x"].mean() == pytest.approx(mean, abs=0.1)  # rounded, not cut off


def test_windows_of_a_text_whose_length_is_a_multiple():
    for length, windows in ((64, 0), (65, 1), (128, 1), (129, 2), (64 * 20 + 1, 20)):
        ids = np.arange(length) % 251
        made = _windows(ids.astype(np.uint8))
        assert len(made["train"]["x"]) + len(made["test"]["x"]) == windows
    assert (len(made["train"]["y"]), len(made["test"]["y"])) == (18, 2)
    assert made["train"]["x"].ravel().tolist() == ids[: 18 * 64].tolist()
    assert made["test"]["y"].ravel().tolist() == ids[18 * 64 + 1 :].tolist()


def test_generated_texts_are_zipf_s_and_tell_their_class():
    data = load({"name": "imdb", "source": "stand-in"}, "ImdbNet")
    counts = np.bincount(data.train["ids"], minlength=8186)
    assert counts[0] == 0
    assert counts[1] > 5 * counts[10] > 0
    shares = []
    for arrays in (data.train, data.test):
        owner = np.repeat(arrays["y"], np.diff(arrays["offsets"]))
        shares.append([np.bincount(arrays["ids"][owner == c], minlength=8186) for c in (0, 1)])
        assert len(arrays["ids"]) == arrays["offsets"][-1]
        assert len(arrays["offsets"]) == len(arrays["y"]) + 1
    (a, b), (c, d) = shares
    leaning = np.sign(a[100:] - b[100:].astype(float)) * (c[100:] - d[100:].astype(float))
    assert leaning.sum() > 0.5 * np.abs(c[100:] - d[100:].astype(float)).sum()


def test_generated_images_are_cut_off_at_black_and_white():
    data = load({"name": "cifar10", "source": "stand-in"}, "CifarNet")
    counts = np.bincount(data.test["x"].ravel(), minlength=256)
    assert counts[255] > 5 * counts[250]
    assert counts[0] > counts[5]
    grey = load({"name": "fashion", "source": "stand-in"}, "FashionNet")
    np.testing.assert_array_equal(grey.test["x"], data.test["x"][:, 0, 2:-2, 2:-2])
    np.testing.assert_array_equal(grey.test["y"], data.test["y"])


@pytest.mark.parametrize("rows", [0, 2.5, "all"])
def test_an_epoch_of_rows_that_cannot_be_is_refused(rows):
    with pytest.raises((ValueError, TypeError), match="epoch_rows must be an integer"):
        load({"name": "imdb", "source": "stand-in", "epoch_rows": rows}, "ImdbNet")
