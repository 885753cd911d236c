"""Every fifth step an evaluation keeps the model's outputs under the step's number.

Growth in stairs: four steps of nothing, then a step up. The dictionary is meant for the last few
evaluations, but nobody removes the old ones.

cause: leak
layer: tensor
allocated: marked
kept: marked
"""

import torch
from torch import nn

evaluations = {}


def evaluate(model, step, data):
    with torch.no_grad():
        outputs = model(data)  # <- allocated
    evaluations[step] = outputs  # <- kept


def main():
    torch.manual_seed(0)
    model = nn.Linear(64, 128)
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(256, 64)
    for step in range(200):
        loss = model(torch.randn(32, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            evaluate(model, step, data)


if __name__ == "__main__":
    main()
