"""Healthy: a cache of word vectors, of words as common as words are, over 5000 steps.

The k-th most common of 3000 words comes with a probability of about 1 / k: most are met early, a
new one ever more rarely. It has the size of its vocabulary at most.

cause: none
layer: tensor
"""

import random

import torch
from torch import nn

vectors = {}


def vector(word):
    found = vectors.get(word)
    if found is None:
        found = vectors[word] = torch.full((1024,), float(word))
    return found


def main():
    random.seed(0)
    torch.manual_seed(0)
    words = range(1, 3001)
    weights = [1 / word for word in words]
    model = nn.Linear(1024, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for _ in range(5000):
        batch = torch.stack([vector(word) for word in random.choices(words, weights, k=4)])
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
