# SPDX-License-Identifier: Apache-2.0
"""The library's networks in PyTorch: the layers and losses of include/tunewright/nn/, as one would write them there.

Rows of all programs of a batch lie one after the other, and layers that look at one row at a time see no padding;
attention does, and recurrent layers take a PackedSequence. Weights have the names and shapes of our files of tensors.
"""

import json

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def read_tensors(path):
    """What a safetensors file of floats holds, by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    numbers = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        numbers[name] = torch.tensor(np.frombuffer(data[first:last], np.float32).reshape(entry["shape"]))
    return numbers


class Rows:
    """The rows of some programs, one after the other."""

    def __init__(self, values, lengths):
        self.values, self.lengths, self.programs = values, lengths, len(lengths)
        self.program = torch.repeat_interleave(torch.arange(self.programs), lengths)
        self.first = torch.cumsum(lengths, 0) - lengths
        self.place = torch.arange(len(values)) - self.first[self.program]  # within its program
        self.longest = int(lengths.max()) if self.programs else 0

    def sums(self, values):
        """(R, D) -> (P, D)"""
        return values.new_zeros(self.programs, values.shape[1]).index_add(0, self.program, values)

    def pad(self, values):
        """(R, D) -> (P, T, D), with zeros"""
        flat = values.new_zeros(self.programs * self.longest, values.shape[1])
        flat = flat.index_copy(0, self.program * self.longest + self.place, values)
        return flat.view(self.programs, self.longest, -1)

    def mask(self):
        """(P, T): true where there is a row"""
        return torch.arange(self.longest)[None, :] < self.lengths[:, None]

    def unpad(self, padded):
        """(P, T, D) -> (R, D)"""
        return padded.reshape(-1, padded.shape[-1]).index_select(0, self.program * self.longest + self.place)


class Programs:
    """Programs to take batches of; rows are chosen and scaled once."""

    def __init__(self, features, offsets, columns, scale, kind=None):
        features, owner = np.asarray(features), np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        if kind is not None:
            owner, features = owner[features[:, 0] == kind], features[features[:, 0] == kind]
        self.values = torch.tensor(np.clip(features[:, columns] / scale.numpy()[columns], -4, 4))
        self.lengths = torch.tensor(np.bincount(owner, minlength=len(offsets) - 1))
        self.first = torch.cumsum(self.lengths, 0) - self.lengths

    def take(self, programs):
        lengths = self.lengths[programs]
        rows = Rows(torch.empty(int(lengths.sum()), 0), lengths)
        rows.values = self.values.index_select(0, self.first[programs][rows.program] + rows.place)
        return rows


def linear(tensors, name):
    weight = tensors[name + ".weight"]
    layer = nn.Linear(*weight.shape)
    layer.weight = nn.Parameter(weight.T.clone(memory_format=torch.contiguous_format))
    layer.bias = nn.Parameter(tensors[name + ".bias"].flatten().clone())
    return layer


def linears(tensors, *names):
    return nn.ModuleList(linear(tensors, name) for name in names)


class Attention(nn.Module):
    def __init__(self, tensors, name, heads):
        super().__init__()
        self.into, self.out, self.heads = linear(tensors, name + ".in"), linear(tensors, name + ".out"), heads

    def forward(self, x, rows):
        if rows.longest == 0:
            return x
        padded = rows.pad(self.into(x))
        q, k, v = padded.view(*padded.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=rows.mask()[:, None, None, :])
        return self.out(rows.unpad(mixed.transpose(1, 2).flatten(2)))


class Mlp(nn.Module):
    def __init__(self, tensors):
        super().__init__()
        self.encoder = linears(tensors, "encoder.0", "encoder.1")
        self.trunk = linears(tensors, "trunk.0", "trunk.1")
        self.output = linear(tensors, "output")

    @staticmethod
    def inputs(columns):
        return [(slice(0, columns), None)]

    def forward(self, rows):
        x = rows.values
        for layer in self.encoder:
            x = torch.relu(layer(x))
        x = rows.sums(x)
        for layer in self.trunk:
            x = x + torch.relu(layer(x))
        return self.output(x)[:, 0]


class PrimitiveAttention(nn.Module):
    def __init__(self, tensors):
        super().__init__()
        self.encoder = linears(tensors, *(f"encoder.{i}" for i in range(4)))
        self.attention = Attention(tensors, "attention", 8)
        self.trunk = linears(tensors, "trunk.0", "trunk.1")
        self.head = linears(tensors, *(f"head.0.{i}" for i in range(4)))

    inputs = Mlp.inputs

    def forward(self, rows):
        x = rows.values
        for layer in self.encoder:
            x = torch.relu(layer(x))
        x = x + self.attention(x, rows)
        for layer in self.trunk:
            x = x + torch.relu(layer(x))
        for layer in self.head[:3]:
            x = torch.relu(layer(x))
        return rows.sums(self.head[3](x))[:, 0]


class PatternAware(nn.Module):
    def __init__(self, tensors):
        super().__init__()
        self.statements = linears(tensors, "statements.0", "statements.1")
        self.dataflow = linears(tensors, "dataflow.0", "dataflow.1")
        self.attention = Attention(tensors, "dataflow.attention", 4)
        self.fuse = linear(tensors, "fuse")
        self.norm = nn.BatchNorm1d(self.fuse.out_features)
        self.trunk = linears(tensors, "trunk.0", "trunk.1")
        self.output = linear(tensors, "output")

    @staticmethod
    def inputs(columns):
        dataflow = 23
        return [(slice(1, columns - dataflow), 0), (slice(columns - dataflow, columns), 1)]

    def forward(self, statements, movements):
        x, t = statements.values, movements.values
        for layer in self.statements:
            x = torch.relu(layer(x))
        for layer in self.dataflow:
            t = torch.relu(layer(t))
        t = t + self.attention(t, movements)
        x = torch.relu(self.fuse(torch.cat([statements.sums(x), movements.sums(t)], 1)))
        x = self.norm(x)
        for layer in self.trunk:
            x = x + torch.relu(layer(x))
        return self.output(x)[:, 0]


class BiLstmAttention(nn.Module):
    def __init__(self, tensors):
        super().__init__()
        self.input, self.output = linear(tensors, "encoder.input"), linear(tensors, "output")
        self.width, self.heads, self.steps, layers = self.input.out_features, 2, 2, 3
        self.lstm = nn.LSTM(self.width, self.width, layers, bidirectional=True)
        with torch.no_grad():
            for layer in range(layers):
                for way, suffix in (("forward", ""), ("backward", "_reverse")):
                    ours, theirs = f"encoder.lstm.{layer}.{way}", f"l{layer}{suffix}"
                    for part, name in (("ih", "input.weight"), ("hh", "recurrent.weight")):
                        weight = self.gates(tensors[f"{ours}.{name}"])
                        getattr(self.lstm, f"weight_{part}_{theirs}").copy_(weight.T)
                    getattr(self.lstm, f"bias_ih_{theirs}").copy_(self.gates(tensors[ours + ".input.bias"])[0])
                    # A second bias would make every step twice as long.
                    bias = getattr(self.lstm, f"bias_hh_{theirs}")
                    bias.zero_()
                    bias.requires_grad_(False)
        self.cell = linear(tensors, "attention.input")
        self.recurrent = nn.Parameter(tensors["attention.recurrent.weight"].clone())

    inputs = Mlp.inputs

    @staticmethod
    def gates(weight):
        """Ours are in the order input, forget, output, cell; PyTorch's end with cell, output."""
        i, f, o, g = weight.chunk(4, 1)
        return torch.cat([i, f, g, o], 1)

    def forward(self, rows):
        # Longest programs first, and their rows step by step: what pack_padded_sequence would make.
        rank = torch.empty_like(rows.lengths)
        rank[torch.argsort(rows.lengths, descending=True, stable=True)] = torch.arange(rows.programs)
        order = torch.argsort(rows.place * rows.programs + rank[rows.program])
        sizes = torch.bincount(rows.place)
        embedded = self.input(rows.values.index_select(0, order))
        states, _ = self.lstm(nn.utils.rnn.PackedSequence(embedded, sizes))
        forward, backward = states.data.chunk(2, 1)
        s = torch.empty_like(embedded).index_copy(0, order, embedded + forward + backward)
        z = rows.sums(s) / rows.lengths[:, None]
        padded = rows.pad(s).view(rows.programs, rows.longest, self.heads, -1)
        off = torch.zeros(rows.programs, rows.longest).masked_fill(~rows.mask(), -torch.inf)[:, :, None]
        c, y = torch.zeros_like(z), z
        gates_of_mean = self.cell(z)
        for _ in range(self.steps):
            share = torch.softmax((padded * y.view(rows.programs, 1, self.heads, -1)).sum(-1) + off, 1)
            read = (share[..., None] * padded).sum(1).flatten(1)
            i, f, o, g = torch.addmm(gates_of_mean, y + read, self.recurrent).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            y = torch.sigmoid(o) * torch.tanh(c) + z
        return self.output(y)[:, 0]


def lambda_rank(score, label):
    """As nn::losses::lambda_rank."""
    order = torch.argsort(label, descending=True, stable=True)
    s, y = score[order], label[order]
    n = len(y)
    discount = 1 / torch.log2(torch.arange(2, n + 2, dtype=torch.float32))
    gain = torch.exp2(y) - 1
    gain = gain / (gain * discount).sum()
    with torch.no_grad():
        of_program = torch.empty_like(discount)
        of_program[torch.argsort(s, descending=True, stable=True)] = discount
        weight = (of_program[:, None] - of_program).abs() * (gain[:, None] - gain).clamp(min=0)
    return -(weight * functional.logsigmoid(s[:, None] - s)).sum() / np.log(2)


def mean_squared(score, label):
    return functional.mse_loss(score, label)


NETWORKS = {
    "mlp": Mlp,
    "bilstm_attention": BiLstmAttention,
    "primitive_attention": PrimitiveAttention,
    "pattern_aware": PatternAware,
}
LOSSES = {"lambda_rank": lambda_rank, "mean_squared": mean_squared}


class Side:
    """A network and its rows. `clock` is a function whose differences are times."""

    def __init__(self, name, data, path, order, training):
        self.kind, self.tensors, self.training = NETWORKS[name], read_tensors(path), training
        scale = self.tensors["input_scale"].flatten()
        self.parts = {}
        for part in ("train", "held_out"):
            features, offsets = data["features_" + part], data["offsets_" + part].astype(np.int64)
            self.parts[part] = [
                Programs(features, offsets, columns, scale, kind)
                for columns, kind in self.kind.inputs(features.shape[1])
            ]
        self.labels = torch.tensor(data["labels_train"])
        self.order = torch.tensor(order.astype(np.int64))
        self.held_out = len(data["labels_held_out"])

    def train(self, threads, clock):
        torch.set_num_threads(threads)
        network = self.network = self.kind(self.tensors)
        network.train()
        loss_of, how = LOSSES[self.training["loss"]], self.training
        learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
        adam = torch.optim.Adam(learned, lr=how["learning_rate"], weight_decay=how["weight_decay"], fused=True)
        began = clock()
        n = self.order.shape[1]
        batches = -(-n // how["batch_programs"])
        for order in self.order:
            for b in range(batches):
                programs = order[b * n // batches : (b + 1) * n // batches]
                score = network(*(part.take(programs) for part in self.parts["train"]))
                loss = loss_of(score, self.labels[programs])
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(learned, how["clip_norm"])
                adam.step()
        return clock() - began

    @torch.inference_mode()
    def predict(self, threads, batch=512):
        """Scores of the held out."""
        torch.set_num_threads(threads)
        self.network.eval()
        scores = []
        for first in range(0, self.held_out, batch):
            programs = torch.arange(first, min(first + batch, self.held_out))
            scores.append(self.network(*(part.take(programs) for part in self.parts["held_out"])))
        return torch.cat(scores).numpy()

    def loss(self, scores, labels, batch=512):
        """Mean of the losses of batches."""
        parts = zip(torch.tensor(scores).split(batch), torch.tensor(labels).split(batch))
        return float(np.mean([LOSSES[self.training["loss"]](*part) for part in parts]))
