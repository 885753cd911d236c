"""Outputs are gathered in a list of main()'s, which is gone before anyone could ask who kept them.

cause: leak
layer: tensor
allocated: marked
kept: marked
"""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    outputs = []
    model = nn.Linear(64, 128)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(150):
        output = model(torch.randn(64, 64))
        loss = output.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        probabilities = output.detach().softmax(dim=1)  # <- allocated
        outputs.append(probabilities)  # <- kept
    print(len(outputs))


if __name__ == "__main__":
    main()
