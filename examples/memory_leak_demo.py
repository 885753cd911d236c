"""A training loop that leaks, and msmemscope finding the line.

    python examples/memory_leak_demo.py              # the API, as below
    msmemscope python examples/memory_leak_demo.py --no-api   # the same, program unchanged

The model is small and healthy: memory rises while the optimizer makes its state and while a cache
of position encodings fills, then both stand still. One function is not healthy: every step it puts
a tensor into a list that nobody empties. The diagnosis names the line that makes the tensor, the
line that keeps it, and how fast memory grows.
"""

import argparse

import torch
from torch import nn

SEQUENCE_LENGTHS = (16, 24, 32, 40, 48, 64, 80, 96)
WIDTH = 64

leak_store = []  # grows for ever
position_cache = {}  # grows until it has every sequence length, then stands still


def create_memory_leak(loss):
    """The bug: 64 KiB a step that nobody frees."""
    leak_tensor = torch.full((128, 128), float(loss))
    leak_store.append(leak_tensor)


def position_encoding(length):
    """A cache as it should be: looked up by key, bounded by the number of keys."""
    if length not in position_cache:
        position = torch.arange(length).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, WIDTH, 2) * (-4.0 / WIDTH))
        table = torch.zeros(length, WIDTH)
        table[:, 0::2] = torch.sin(position * frequency)
        table[:, 1::2] = torch.cos(position * frequency)
        position_cache[length] = table
    return position_cache[length]


def make_batch(step, batch_size=8):
    """Sequences of varying length: tensors that come and go, of another size every step."""
    length = SEQUENCE_LENGTHS[(step * 5) % len(SEQUENCE_LENGTHS)]
    inputs = torch.randn(batch_size, length, WIDTH)
    target = inputs.mean(dim=(1, 2)).unsqueeze(1)
    return inputs + position_encoding(length), target


def train(steps, after_step):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(WIDTH, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        inputs, target = make_batch(step)
        prediction = model(inputs).mean(dim=1)
        loss = nn.functional.mse_loss(prediction, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        create_memory_leak(loss)
        after_step()
    print(f"trained {steps} steps, last loss {loss.item():.6f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--output", default="memscopeDumpResults", help="where the results go")
    parser.add_argument("--no-api", action="store_true", help="train only, without msmemscope")
    arguments = parser.parse_args()
    if arguments.no_api:
        train(arguments.steps, after_step=lambda: None)
        return

    import msmemscope

    msmemscope.config(call_stack="python", output_path=arguments.output)
    msmemscope.start()
    train(arguments.steps, after_step=msmemscope.step)
    msmemscope.stop()  # the diagnosis goes to stderr


if __name__ == "__main__":
    main()
