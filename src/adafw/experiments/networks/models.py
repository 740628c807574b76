"""The paper's two neural networks (section 4.2), a transformer and a perceptron."""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from adafw.experiments.networks.sources import WINDOW


class ImdbNet(nn.Module):
    """A review's subwords to a logit: one hidden layer of 64 units.

    The input is the multi-hot vector of the subwords that occur; its product with the first
    layer's weights is a sum of rows, so the rows' ids are given instead: `ids` of all reviews in
    one vector and the `offsets` at which each review begins. Every id at most once per review.
    """

    def __init__(self, vocabulary: int = 8185, hidden: int = 64) -> None:
        super().__init__()
        self.first = nn.EmbeddingBag(vocabulary, hidden, mode="sum")
        self.first_bias = nn.Parameter(torch.zeros(hidden))
        self.last = nn.Linear(hidden, 1)
        glorot_(self)

    def forward(self, ids: Tensor, offsets: Tensor) -> Tensor:
        """Logits, one per review."""
        hidden = torch.relu(self.first(ids, offsets) + self.first_bias)
        return self.last(hidden).squeeze(1)


class CifarNet(nn.Sequential):
    """Three 3x3 convolutions (32, 64, 64 channels), two 2x2 poolings, a hidden layer of 64.

    122 570 parameters: convolutions without padding, images of shape (3, 32, 32), 10 classes.
    """

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(1024, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )
        glorot_(self)


class FashionNet(nn.Sequential):
    """Two hidden layers of `width` units; grey images of 28 x 28 pixels, 10 classes."""

    def __init__(self, width: int = 256) -> None:
        super().__init__(
            nn.Flatten(),
            nn.Linear(784, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 10),
        )
        glorot_(self)


class CharNet(nn.Module):
    """A transformer of two blocks of `width` units that tells the next of 65 characters.

    Heads of 32 units, hidden layers of 4 * width, normalisation before each part.
    """

    def __init__(self, width: int = 128, alphabet: int = 65) -> None:
        super().__init__()
        self.characters = nn.Embedding(alphabet, width)
        self.places = nn.Embedding(WINDOW, width)
        self.blocks = nn.Sequential(_Block(width), _Block(width))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, alphabet, bias=False)
        glorot_(self.blocks)
        for p in (self.characters.weight, self.places.weight, self.head.weight):
            nn.init.normal_(p, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (batch, place, character)."""
        x = self.characters(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


class _Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 32)
        self.norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        q, k, v = (part.transpose(-2, -3) for part in parts)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(-2, -3).flatten(-2))
        return x + self.down(gelu(self.up(self.second_norm(x))))


@torch.no_grad()
def glorot_(model: nn.Module) -> None:
    """Glorot's uniform initialisation of matrices and kernels, 0 for vectors but those of norms."""
    for layer in model.modules():
        for p in () if isinstance(layer, nn.LayerNorm) else layer.parameters(recurse=False):
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
            else:
                p.zero_()
