"""The paper's two neural networks (section 4.2)."""

import torch
from torch import Tensor, nn


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


@torch.no_grad()
def glorot_(model: nn.Module) -> None:
    """Glorot's uniform initialisation of every matrix and kernel, 0 for every vector."""
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
        else:
            p.zero_()
