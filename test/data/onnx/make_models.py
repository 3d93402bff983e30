#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models with made-up weights, and what onnxruntime computes with them.

    python3 make_models.py      # needs onnx and onnxruntime; writes NAME.onnx and NAME.values.onnx beside itself

NAME.values.onnx holds inputs and outputs of the model as constants, by name.
"""

import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Builder:
    """Collects nodes and weights; tensors are named t0, t1, .. in the order of the nodes."""

    def __init__(self, seed, opset):
        self.random = np.random.default_rng(seed)
        self.opset = opset
        self.nodes, self.weights, self.inputs, self.outputs, self.values = [], [], [], [], {}

    def weight(self, *shape, low=-0.5, high=0.5):
        return self.known(self.random.uniform(low, high, shape).astype(np.float32))

    def known(self, array):
        array = np.asarray(array)
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def input(self, name, array, shape=None):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape or array.shape))
        self.values[name] = array
        return name

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"t{len(self.nodes)}" + (f"_{o}" if outputs > 1 else "") for o in range(outputs)]
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), names, name=name, **attributes))
        return names if outputs > 1 else names[0]

    def output(self, name):
        self.outputs.append(name)

    def model(self, name, shapes):
        outputs = [helper.make_tensor_value_info(o, TensorProto.FLOAT, shape) for o, shape in zip(self.outputs, shapes)]
        graph = helper.make_graph(self.nodes, name, self.inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def save(self, name):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        open_shapes = self.model(name, [None] * len(self.outputs)).SerializeToString()
        results = onnxruntime.InferenceSession(open_shapes, options).run(None, self.values)
        model = self.model(name, [result.shape for result in results])
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, os.path.join(FOLDER, name + ".onnx"))
        arrays = dict(self.values, **dict(zip(self.outputs, results)))
        constants = [numpy_helper.from_array(array, key) for key, array in arrays.items()]
        holder = helper.make_graph([], name + "_values", [], [], constants)
        onnx.save(helper.make_model(holder, opset_imports=[helper.make_opsetid("", self.opset)]),
                  os.path.join(FOLDER, name + ".values.onnx"))
        for output, result in zip(self.outputs, results):
            assert np.isfinite(result).all(), (name, output)
            print(f"{name}: {output} {list(result.shape)}, largest {np.abs(result).max():.3g}")


def norm(b, x, channels, **attributes):
    return b.node("BatchNormalization", x, b.weight(channels, low=0.5, high=1.5), b.weight(channels),
                  b.weight(channels), b.weight(channels, low=0.5, high=1.5), **attributes)


def image_network(opset):
    """Convolutions of all kinds, normalisation folded and on its own, pooling, a classifier."""
    b = Builder(1, opset)
    x = b.input("image", b.random.standard_normal((2, 4, 9, 10)).astype(np.float32))
    y = b.node("Conv", x, b.weight(6, 2, 3, 3), group=2, pads=[1, 0, 0, 2], strides=[2, 1], kernel_shape=[3, 3])
    y = b.node("Relu", norm(b, y, 6, epsilon=1e-3))
    z = b.node("Conv", y, b.weight(8, 6, 2, 2), b.weight(8), auto_pad="SAME_UPPER", strides=[2, 2])
    z = norm(b, z, 8)
    low, high = b.known(np.float32(0)), b.known(np.float32(6))
    z = b.node("Clip", z, low, high)
    z = norm(b, z, 8)  # of a tensor that no convolution computes
    z = b.node("Conv", z, b.weight(8, 1, 3, 3), b.weight(8), group=8, pads=[2, 2, 2, 2], dilations=[2, 2])
    p = b.node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    q = b.node("AveragePool", y, kernel_shape=[2, 3], strides=[2, 2], auto_pad="SAME_LOWER")
    r = b.node("AveragePool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1)
    s = b.node("AveragePool", y, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 1, 1, 0], count_include_pad=1)
    picked = b.node("Slice", b.node("Concat", p, q, axis=1), b.known([0, 0]), b.known([2, 2**62]), b.known([-2, 3]))
    c = b.node("Concat", b.node("Conv", picked, b.weight(8, 12, 1, 1)), z, axis=1)
    g = b.node("Flatten", b.node("GlobalAveragePool", c))
    other = b.node("ReduceMean", b.node("Sigmoid", r), b.known([2, 3]), keepdims=0) if opset >= 18 else b.node(
        "ReduceMean", b.node("Sigmoid", r), axes=[2, 3], keepdims=0)
    g = b.node("Concat", g, other, b.node("Squeeze", b.node("GlobalMaxPool", s), b.known([2, 3])), axis=-1)
    logits = b.node("Gemm", g, b.weight(5, 28), b.weight(5), transB=1, alpha=0.5, beta=2.0)
    b.output(b.node("Softmax", b.node("Dropout", logits), axis=1))
    b.output(b.node("Pad", c, b.known([0, 0, 1, 0, 0, 1, 0, 2]), b.known(np.float32(0.25))))
    b.save(f"images_{opset}")


def transformer_network(whole):
    """Embeddings, attention under a causal mask that is computed from shapes, and feed-forward layers;
    normalisation and GELU as operators, or written out as older exporters do."""
    hidden, heads, tokens = 8, 2, 5
    b = Builder(2, 20 if whole else 14)
    ids = b.input("ids", b.random.integers(0, 11, (1, tokens)), ["batch", "tokens"])
    mask = b.input("mask", np.array([[1, 1, 1, 1, 0]], dtype=np.int64), ["batch", "tokens"])
    table = b.weight(11, hidden)
    extent = b.node("Gather", b.node("Shape", ids), b.known(1))
    places = b.node("Range", b.known(0), extent, b.known(1))
    positions = b.node("Gather", b.weight(7, hidden), places)
    x = b.node("Add", b.node("Gather", table, ids), positions)

    def layer_norm(x):
        if whole:
            return b.node("LayerNormalization", x, b.weight(hidden), b.weight(hidden), epsilon=1e-3)
        d = b.node("Sub", x, b.node("ReduceMean", x, axes=[-1]))
        v = b.node("ReduceMean", b.node("Pow", d, b.known(np.float32(2))), axes=[-1])
        d = b.node("Div", d, b.node("Sqrt", b.node("Add", v, b.known(np.float32(1e-3)))))
        return b.node("Add", b.node("Mul", d, b.weight(hidden)), b.weight(hidden))

    def gelu(x):
        if whole:
            return b.node("Gelu", x, approximate="tanh")
        erf = b.node("Erf", b.node("Div", x, b.known(np.float32(np.sqrt(2)))))
        return b.node("Mul", b.node("Mul", x, b.node("Add", erf, b.known(np.float32(1)))), b.known(np.float32(0.5)))

    def split_heads(x, order):
        shape = b.node("Concat", b.known([1]), b.node("Unsqueeze", extent, b.known([0])), b.known([heads]),
                       b.known([-1]), axis=0)
        return b.node("Transpose", b.node("Reshape", x, shape), perm=order)

    qkv = b.node("Add", b.node("MatMul", layer_norm(x), b.weight(hidden, 3 * hidden)), b.weight(3 * hidden))
    q, k, v = b.node("Split", qkv, b.known([hidden] * 3), axis=2, outputs=3)
    scores = b.node("MatMul", split_heads(q, [0, 2, 1, 3]), split_heads(k, [0, 2, 3, 1]))
    scores = b.node("Mul", scores, b.known(np.float32((hidden / heads)**-0.5)))
    later = b.node("Less", b.node("Unsqueeze", places, b.known([1])), b.node("Unsqueeze", places, b.known([0])))
    square = [b.node("Unsqueeze", extent, b.known([0])) for _ in range(2)]
    square = b.node("Concat", *square, axis=0)
    zeros = b.node("Expand", b.known(np.float32(0)), square)
    causal = b.node("Where", later, b.known(np.float32(-1e4)), zeros)
    hidden_words = b.node("Unsqueeze", b.node("Cast", mask, to=TensorProto.FLOAT), b.known([1, 2]))
    hidden_words = b.node("Mul", b.node("Sub", b.known(np.float32(1)), hidden_words), b.known(np.float32(-1e4)))
    weights = b.node("Softmax", b.node("Add", b.node("Add", scores, causal), hidden_words), axis=-1)
    mixed = b.node("Transpose", b.node("MatMul", weights, split_heads(v, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    mixed = b.node("Reshape", mixed, b.known([1, -1, hidden]))
    x = b.node("Add", x, b.node("MatMul", mixed, b.weight(hidden, hidden)))
    inner = gelu(b.node("Add", b.node("MatMul", layer_norm(x), b.weight(hidden, 12)), b.weight(12)))
    x = b.node("Add", x, b.node("MatMul", inner, b.weight(12, hidden)))
    first = b.node("Gather", x, b.known(0), axis=1)
    b.output(b.node("MatMul", x, b.node("Transpose", table, perm=[1, 0])))
    b.output(b.node("Tanh", b.node("Gemm", first, b.weight(hidden, hidden))))
    b.output(b.node("Transpose", b.node("Identity", v), perm=[0, 2, 1]))
    b.save("transformer" if whole else "transformer_written_out")


def elementwise_network():
    """Each operator that computes element by element, with operands that broadcast."""
    b = Builder(3, 17)
    x = b.input("x", b.random.uniform(-2, 2, (2, 3, 4)).astype(np.float32))
    column = b.input("column", b.random.uniform(0.5, 2, (3, 1)).astype(np.float32))
    parts = [b.node(op, x) for op in ("Relu", "Sigmoid", "Erf", "Tanh", "Exp", "Neg", "Abs", "HardSwish", "LeakyRelu")]
    parts += [b.node(op, x, column) for op in ("Add", "Sub", "Mul", "Div", "Min", "Max")]
    positive = b.node("Add", b.node("Abs", x), b.known(np.float32(0.5)))
    parts += [b.node(op, positive) for op in ("Log", "Sqrt", "Reciprocal")]
    parts += [b.node("Pow", positive, b.known(np.float32(e))) for e in (2, 3, 0.5, -1)]
    smaller = b.node("Less", x, column)
    parts.append(b.node("Where", b.node("Not", smaller), x, b.known(np.float32(-1))))
    parts.append(b.node("Where", b.node("And", smaller, b.node("Greater", x, b.known(np.float32(0)))), x, column))
    parts.append(b.node("HardSigmoid", x, alpha=0.25, beta=0.4))
    parts.append(b.node("Trilu", x, b.known(1), upper=0))
    b.output(b.node("Concat", *parts, axis=0))
    b.output(b.node("ReduceMax", b.node("Transpose", x, perm=[2, 0, 1]), axes=[1], keepdims=0))
    b.output(b.node("ReduceSum", x, b.known([-1])))
    b.save("elementwise")


image_network(13)
image_network(18)
transformer_network(True)
transformer_network(False)
elementwise_network()
