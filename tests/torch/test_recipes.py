"""Balls by the kind of a layer: `constrain(model, recipe=...)`."""

import pytest
import torch
from torch import nn

import adafw
from adafw.torch import SFW, Lion, Muon, NewtonSchulzBall, Scion, Signum, constrain

OPTIMIZERS = {"muon": Muon, "scion": Scion, "lion": Lion}


class Transformer(nn.Module):
    """A small one, with every kind of weight: experts are a tensor of three dimensions."""

    def __init__(self, tied=False):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.conv = nn.Conv1d(8, 8, 3, padding=1)
        self.norm = nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.experts = nn.Parameter(0.1 * torch.randn(3, 8, 8))
        self.up = nn.Linear(8, 16)
        self.qkv = nn.Linear(16, 24, bias=False)
        self.head = nn.Linear(24, 11) if not tied else nn.Linear(8, 11, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids)
        x = self.norm(x + self.conv(x.mT).mT)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        x = x + torch.einsum("bti,eij->btj", x, self.experts)
        return self.head(self.qkv(torch.relu(self.up(x))))


def kinds(groups):
    return {name: group for group in groups for name in group["names"]}


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Transformer()


def test_muon_s_recipe(model, capsys):
    groups = constrain(model, recipe="muon", split={"qkv.*": 3})
    of = kinds(groups)
    hidden = {n for n, g in of.items() if not g.get("adamw")}
    assert hidden == {"conv.weight", "attention.in_proj_weight", "attention.out_proj.weight",
                      "experts", "up.weight", "qkv.weight"}  # fmt: skip
    assert {n: of[n].get("split", 1) for n in hidden} == {
        "conv.weight": 1, "attention.in_proj_weight": 3, "attention.out_proj.weight": 1,
        "experts": 3, "up.weight": 1, "qkv.weight": 3}  # fmt: skip
    assert of["embed.weight"]["weight_decay"] == of["head.weight"]["weight_decay"] == 0.1
    assert of["norm.weight"]["weight_decay"] == of["up.bias"]["weight_decay"] == 0.0
    assert sum(len(g["params"]) for g in groups) == len(list(model.parameters()))
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if line.startswith("qkv.weight"))
    assert line.split() == [
        "qkv.weight",
        "Linear",
        "24x16",
        "hidden",
        "spectral",
        "ball",
        "of",
        "each",
        "of",
        "3",
        "matrices",
    ]
    assert shown.splitlines()[-1] == "for adafw.torch.Muon; lr=0.03 as a first try"


def test_scion_s_recipe_and_the_radii_it_stands_for(model):
    optimizer = Scion(constrain(model, recipe="scion", show=False), lr=0.05)
    held = {g["names"][0]: g["constraint"] for g in optimizer.held_groups()}
    assert held["embed.weight"] == adafw.RowBall(8**0.5)
    assert held["head.weight"] == adafw.LInfBall(128 / 24)
    assert held["up.weight"] == NewtonSchulzBall(8 * (16 / 8) ** 0.5)
    assert held["conv.weight"] == NewtonSchulzBall(8 * 1 / 3)
    assert held["attention.in_proj_weight"] == NewtonSchulzBall(8.0, split=3)
    assert held["up.bias"] == adafw.RMSBall(1.0)
    assert held["norm.weight"] == adafw.RMSBall(8.0)


def test_tied_embeddings_count_as_head():
    of = kinds(constrain(Transformer(tied=True), recipe="scion", show=False))
    assert of["embed.weight"]["norm"] == "sign"
    assert "head.weight" not in of


def test_lion_s_recipe_decays_matrices_only(model):
    of = kinds(constrain(model, recipe="lion", show=False))
    assert of["up.bias"]["weight_decay"] == of["norm.weight"]["weight_decay"] == 0.0
    assert "weight_decay" not in of["up.weight"]


@pytest.mark.parametrize("recipe", OPTIMIZERS)
def test_recipes_train(recipe, model):
    groups = constrain(model, recipe=recipe, show=False)
    rate = {"muon": 0.02, "scion": 0.003, "lion": 0.003}[recipe]
    optimizer = OPTIMIZERS[recipe](groups, lr=rate)
    ids = torch.randint(11, (16, 9), generator=torch.Generator().manual_seed(0))
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert len(optimizer.describe().splitlines()) == 1 + len(list(model.parameters()))


def test_what_does_not_fit_is_refused(model):
    with pytest.raises(ValueError, match="recipe must be one of muon, scion, lion, got 'adam'"):
        constrain(model, recipe="adam")
    with pytest.raises(ValueError, match="recipe='muon' chooses the sets: leave set, diameter"):
        constrain(model, adafw.LInfBall, recipe="muon")
    with pytest.raises(ValueError, match="split= goes with recipe="):
        constrain(model, adafw.LInfBall, radius=1.0, split={"qkv": 3})
    with pytest.raises(ValueError, match="split names 'kqv', which no parameter is called"):
        constrain(model, recipe="muon", split={"kqv": 3}, show=False)
    with pytest.raises(ValueError, match="model must have parameters, got Tanh without any"):
        constrain(nn.Tanh(), recipe="muon")
    groups = constrain(model, recipe="muon", show=False)
    for wrong in (lambda: SFW(groups, lr=0.1), lambda: Signum(groups)):
        with pytest.raises(ValueError, match=r"made by constrain\(recipe='muon'\) is for .*Muon"):
            wrong()
    with pytest.raises(TypeError, match=r"a class of sets such as adafw\.LInfBall"):
        constrain(model, radius=1.0)


@pytest.mark.parametrize(
    ("recipe", "told"),
    [("muon", "for adafw.torch.Muon; lr=0.03 as a first try"),
     ("scion", "for adafw.torch.Scion; lr=0.003 as a first try"),
     ("lion", "for adafw.torch.Lion; lr=0.001 as a first try")],
)  # fmt: skip
def test_every_recipe_says_what_it_is_for_and_what_each_kind_gets(recipe, told, model, capsys):
    constrain(model, recipe=recipe)
    head, *lines, last = capsys.readouterr().out.splitlines()
    assert last == told
    assert head.split() == ["parameter", "layer", "shape", "kind", "ball"]
    rows = {line.split()[0]: (line.split()[3], " ".join(line.split()[4:])) for line in lines}
    spectral, entry = "spectral ball", "largest entry"
    words = {
        "muon": (spectral, f"{spectral} of (out, rest)", "AdamW", "AdamW", "AdamW without decay",
                 "AdamW without decay"),
        "scion": (spectral, f"{spectral} of (out, rest)", "row ball", entry, "RMS ball",
                  "RMS ball"),
        "lion": (entry, entry, entry, entry, "signs, no ball", "signs, no ball"),
    }[recipe]  # fmt: skip
    names = ("up.weight", "conv.weight", "embed.weight", "head.weight", "norm.weight", "up.bias")
    kinds = ("hidden", "conv", "embedding", "head", "norm", "bias")
    assert [rows[n] for n in names] == list(zip(kinds, words, strict=True))
    assert rows["experts"] == ("hidden", f"{words[0]} of each of 3 matrices")


def test_options_that_the_recipes_give():
    torch.manual_seed(0)
    model = Transformer()
    names = ("up.weight", "conv.weight", "embed.weight", "head.weight", "norm.weight", "up.bias")
    free = {"adamw": True, "lr": 3e-3, "weight_decay": 0.0}
    adamw = {**free, "weight_decay": 0.1}
    norms = [("spectral", 8.0), ("conv", 8.0), ("embedding", 1.0), ("sign", 128.0), ("rms", 8.0),
             ("rms", 1.0)]  # fmt: skip
    plain = {"weight_decay": 0.0}
    for recipe, wanted in (
        ("muon", [{}, {}, adamw, adamw, free, free]),
        ("scion", [{"norm": norm, "scale": scale} for norm, scale in norms]),
        ("lion", [{}, {}, {}, {}, plain, plain]),
    ):
        of = kinds(constrain(model, recipe=recipe, show=False))
        own = [{k: v for k, v in of[n].items() if k not in ("params", "names")} for n in names]
        assert own == [{"recipe": recipe, **options} for options in wanted]


def test_a_head_is_the_last_linear_layer_if_something_comes_before_it():
    one = nn.Linear(3, 2)
    of = kinds(constrain(one, recipe="muon", show=False))
    assert "adamw" not in of["weight"]
    two = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2), nn.Conv1d(2, 2, 1))
    of = kinds(constrain(two, recipe="muon", show=False))
    assert [n for n in ("0.weight", "1.weight", "2.weight") if "adamw" in of[n]] == ["1.weight"]
    images = nn.Sequential(nn.Conv1d(2, 3, 1), nn.Flatten(), nn.Linear(3, 4))
    of = kinds(constrain(images, recipe="muon", show=False))
    assert [n for n in ("0.weight", "2.weight") if "adamw" in of[n]] == ["2.weight"]
    embedded = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5))
    of = kinds(constrain(embedded, recipe="scion", show=False))
    assert (of["0.weight"]["norm"], of["1.weight"]["norm"]) == ("embedding", "sign")


def test_bags_of_embeddings_are_embeddings_and_projections_by_themselves_are_whole():
    bag = nn.Sequential(nn.EmbeddingBag(5, 3), nn.Linear(3, 3), nn.Linear(3, 5))
    of = kinds(constrain(bag, recipe="scion", show=False))
    assert [of[f"{i}.weight"]["norm"] for i in range(3)] == ["embedding", "spectral", "sign"]
    apart = nn.Sequential(nn.MultiheadAttention(8, 2, kdim=4, vdim=6), nn.Linear(8, 3))
    of = kinds(constrain(apart, recipe="muon", show=False))
    for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
        assert of[f"0.{name}"].get("split", 1) == 1
    with pytest.raises(ValueError, match=r"split of '1\.\*' must be an integer >= 1, got 0"):
        constrain(bag, recipe="muon", split={"1.*": 0}, show=False)


def test_scalars_are_named_in_the_table(capsys):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.weight = (
                nn.Parameter(torch.tensor(1.0)),
                nn.Parameter(torch.ones(3, 2)),
            )

    constrain(Scaled(), recipe="muon")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:4] == ["scale", "Scaled", "scalar", "bias"]
    assert lines[2].split()[:4] == ["weight", "Scaled", "3x2", "hidden"]


def test_layers_that_normalise_images_are_no_matrices():
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm((3, 4)), nn.Linear(4, 2))
    of = kinds(constrain(model, recipe="scion", show=False))
    assert [of[f"{i}.weight"]["norm"] for i in range(3)] == ["spectral", "rms", "sign"]
    assert of["1.weight"]["scale"] == 8.0
