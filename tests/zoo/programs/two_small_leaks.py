"""Two leaks at once, in the same steps, small both: a debugging list and a statistics list.

They have nothing in common but the program: each is its own verdict.

cause: leak; leak
layer: tensor
allocated: marked
kept: marked
"""

import torch
from torch import nn

seen = []
norms = []


def remember(batch):
    sample = batch[:32].clone()  # <- allocated
    seen.append(sample)  # <- kept


def measure(model):
    norm = model.weight.detach().pow(2)  # <- allocated 2
    norms.append(norm)  # <- kept 2


torch.manual_seed(0)
model = nn.Linear(64, 40)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(200):
    batch = torch.randn(64, 64)
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    remember(batch)
    measure(model)
