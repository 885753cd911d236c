"""Healthy: an evaluation every 20 steps, whose outputs are kept until the next one.

The best outputs so far are kept, too: a new best replaces the old one.

cause: none
layer: tensor
"""

import torch
from torch import nn

state = {"outputs": [], "best": None, "score": float("inf")}


def evaluate(model, data):
    outputs = []
    with torch.no_grad():
        for batch in data:
            outputs.append(model(batch))
    score = torch.cat(outputs).pow(2).mean().item()
    state["outputs"] = outputs
    if score < state["score"]:
        state["best"], state["score"] = [output.clone() for output in outputs], score


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    data = [torch.randn(128, 64) for _ in range(10)]
    for step in range(240):
        loss = (model(torch.randn(32, 64)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            evaluate(model, data)


if __name__ == "__main__":
    main()
