"""The optimizers inside Lightning, accelerate and the Hugging Face Trainer, where installed."""

import warnings

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import adafw
from adafw.torch import AdamSFW, Lion, Muon, constrain

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the trainers' own


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 1))


def data():
    x = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, x[:, :1] * x[:, 1:2])


def muon(model):
    return Muon(constrain(model, recipe="muon", show=False), lr=0.02)


def adamsfw(model):
    return AdamSFW(constrain(model, adafw.LInfBall, diameter=20.0, show=False), lr=0.02)


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize("make", [muon, adamsfw])
def test_lightning_trains_saves_and_resumes(make, tmp_path):
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = network()

        def training_step(self, batch, _):
            return nn.functional.mse_loss(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            optimizer = make(self.net)
            scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
            return [optimizer], [scheduler]

    def trainer(epochs):
        return lightning.Trainer(max_epochs=epochs, accelerator="cpu", logger=False,
                                 enable_progress_bar=False, enable_model_summary=False,
                                 default_root_dir=tmp_path, gradient_clip_val=1.0)  # fmt: skip

    loader = DataLoader(data(), batch_size=16)
    first, straight = Module(), Module()
    before = nn.functional.mse_loss(first.net(data()[:][0]), data()[:][1]).item()
    half = trainer(2)
    half.fit(first, loader)
    half.save_checkpoint(tmp_path / "half.ckpt")
    resumed = Module()
    trainer(4).fit(resumed, loader, ckpt_path=tmp_path / "half.ckpt")
    trainer(4).fit(straight, loader)
    assert torch.equal(weights(resumed.net), weights(straight.net))
    assert nn.functional.mse_loss(resumed.net(data()[:][0]), data()[:][1]).item() < before


@pytest.mark.parametrize("make", [muon, adamsfw])
def test_accelerate_prepares_saves_and_loads(make, tmp_path):
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    accelerator = accelerate.Accelerator(cpu=True)
    model = network()
    model, optimizer, loader = accelerator.prepare(
        model, make(model), DataLoader(data(), batch_size=16)
    )

    def epoch():
        for x, y in loader:
            optimizer.zero_grad()
            accelerator.backward(nn.functional.mse_loss(model(x), y))
            optimizer.step()

    epoch()
    accelerator.save_state(tmp_path / "state")
    epoch()
    end = weights(model)
    for _ in range(2):
        accelerator.load_state(tmp_path / "state")
        epoch()
        assert torch.equal(weights(model), end)


class Regression(nn.Module):
    """As the Trainer wants it: a dict with a loss."""

    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, x, labels=None):
        out = self.net(x)
        return {"loss": nn.functional.mse_loss(out, labels), "logits": out}


@pytest.mark.parametrize("make", [muon, adamsfw])
def test_the_hugging_face_trainer_trains_and_resumes(make, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    rows = [{"x": x, "labels": y} for x, y in data()]

    def trainer(folder, steps):
        model = Regression()
        options = transformers.TrainingArguments(
            output_dir=str(folder), max_steps=steps, per_device_train_batch_size=16,
            save_steps=4, use_cpu=True, report_to=[], disable_tqdm=True, weight_decay=0.0,
            lr_scheduler_type="constant", save_strategy="steps",
        )  # fmt: skip
        return transformers.Trainer(
            model=model, args=options, train_dataset=rows, optimizers=(make(model.net), None)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        straight = trainer(tmp_path / "a", 8)
        straight.train()
        resumed = trainer(tmp_path / "b", 8)
        resumed.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-4"))
    assert torch.equal(weights(straight.model), weights(resumed.model))


def test_the_trainer_hands_its_weight_decay_on_as_a_radius(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    options = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=16, use_cpu=True,
        report_to=[], disable_tqdm=True, weight_decay=0.05, save_strategy="no",
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=Regression(), args=options,
        train_dataset=[{"x": x, "labels": y} for x, y in data()],
        optimizer_cls_and_kwargs=(Lion, {"lr": 1e-3}),
    )  # fmt: skip
    trainer.train()
    optimizer = trainer.optimizer.optimizer
    held = [g["constraint"] for g in optimizer.held_groups()]
    assert {c.radius for c in held if c is not None} == {20.0}
    assert None in held  # biases and norm layers have no decay there, hence no ball
    assert all(c.contains(p.detach()) for c, g in zip(held, optimizer.held_groups(), strict=True)
               if c is not None for p in g["params"])  # fmt: skip
