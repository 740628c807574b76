from itertools import pairwise

import numpy as np
import pytest

from adafw.datasets import DataMissing
from adafw.experiments.networks.data import SPLITS, load, mapped
from adafw.experiments.networks.sources import _pick_texts

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
