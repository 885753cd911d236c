"""Features are gathered into one tensor by torch.cat, every step a longer one.

There is one live block at any time, but it is larger every step: memory grows although nothing
piles up, and the copies come and go. Seen in feature banks that were meant to be cut to a length
and never are.

cause: leak
layer: tensor
allocated: marked
kept: marked
"""

import torch
from torch import nn

bank = torch.zeros(0, 64)


def remember(features):
    global bank
    bank = torch.cat([bank, features])  # <- allocated <- kept


def main():
    torch.manual_seed(0)
    model = nn.Linear(32, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(150):
        features = model(torch.randn(128, 32))
        loss = features.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        remember(features.detach())


if __name__ == "__main__":
    main()
