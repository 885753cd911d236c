"""A replay buffer of reinforcement learning whose deque was given no maxlen.

Each step appends a tuple of state, action and reward; old ones are sampled from, never dropped.

cause: leak
layer: tensor
allocated: marked
kept: marked
"""

import random
from collections import deque

import torch
from torch import nn


class ReplayBuffer:
    def __init__(self):
        self.memory = deque()  # maxlen was forgotten

    def push(self, state, action, reward):
        self.memory.append((state, action, reward))  # <- kept

    def sample(self, count):
        chosen = random.sample(self.memory, min(count, len(self.memory)))
        return torch.stack([state for state, _, _ in chosen])


buffer = ReplayBuffer()


def observe():
    return torch.randn(64, 256)  # <- allocated


def main():
    torch.manual_seed(0)
    model = nn.Linear(256, 4)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(150):
        buffer.push(observe(), step % 4, 1.0)
        loss = model(buffer.sample(4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
