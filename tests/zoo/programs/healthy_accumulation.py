"""Healthy: gradient accumulation, and an evaluation that needs much memory for a moment.

Gradients stand for eight micro-batches and are dropped at the step; every 25 steps an evaluation
gathers its outputs, uses them and lets them go.

cause: none
layer: tensor
"""

import torch
from torch import nn


def evaluate(model):
    outputs = []
    with torch.no_grad():
        for _ in range(30):
            outputs.append(model(torch.randn(128, 64)))
    return torch.cat(outputs).mean().item()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(150):
        for _ in range(8):
            loss = model(torch.randn(32, 64)).pow(2).mean() / 8
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 25 == 24:
            evaluate(model)


if __name__ == "__main__":
    main()
