"""A program that knows nothing of layertrace: some steps as they are, then a CUDA graph of one."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
inputs = torch.randn(8, 16, device="cuda")


def work():
    model(inputs).square().mean().backward()


aside = torch.cuda.Stream()  # as PyTorch's documentation has it
aside.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(aside):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=False)
        work()
        optimizer.step()
torch.cuda.current_stream().wait_stream(aside)
torch.cuda.synchronize()

graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=False)
with torch.cuda.graph(graph):
    work()
for _ in range(12):
    optimizer.zero_grad(set_to_none=False)
    graph.replay()
    optimizer.step()
torch.cuda.synchronize()
print("trained")
