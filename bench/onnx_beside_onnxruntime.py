#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The networks of `networks/`, exported by PyTorch, imported from ONNX, and compared with onnxruntime on the same file.

    python3 onnx_beside_onnxruntime.py --bench=BUILD/bench/bench_onnx [--networks=A,B] [--exporters=script,dynamo]
                                       [--evaluator] [--folder=DIR]

Weights are made up. For each network and exporter a line: nodes, parameters, tasks, seconds, and the largest relative
error of any output, or why the file was not imported. Exits with 1 unless all errors are below 1e-4. `script` is the
exporter by TorchScript (opset 17), `dynamo` the one by torch.export. With --evaluator the reference runs networks.

Needs torch, torchvision, transformers, onnx, onnxscript and onnxruntime.
"""

import argparse
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
    import torch
    import torchvision
    import transformers
except ImportError as error:
    sys.exit(f"{error}; install what is compared with: "
             "pip install torch torchvision transformers onnx onnxscript onnxruntime")

from networks_beside_libraries import Gpt2Step

IMAGES = {"resnet18": 224, "resnet50": 224, "wide_resnet50_2": 224, "mobilenet_v2": 224, "inception_v3": 299,
          "densenet121": 224, "vgg16": 224, "squeezenet1_1": 224, "vit_b_16": 224}
TRANSFORMERS = ["bert_base", "gpt2_prefill", "gpt2_decode"]


class Outputs(torch.nn.Module):
    """A model of transformers whose outputs are tensors."""

    def __init__(self, model, **options):
        super().__init__()
        self.model = model
        self.options = options

    def forward(self, ids):
        return tuple(self.model(ids, return_dict=False, **self.options))


def model_of(network):
    """The model and its inputs."""
    torch.manual_seed(1)
    if network in IMAGES:
        options = {"init_weights": True} if network == "inception_v3" else {}
        model = getattr(torchvision.models, network)(weights=None, **options)
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):  # which begins as an identity
                torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
                torch.nn.init.normal_(module.running_mean, 0, 0.1)
                torch.nn.init.uniform_(module.weight, 0.5, 1.5)
                torch.nn.init.normal_(module.bias, 0, 0.1)
        if network == "vit_b_16":  # whose classifier begins with zeros
            torch.nn.init.normal_(model.heads.head.weight, 0, 0.02)
        return model, (torch.randn(1, 3, IMAGES[network], IMAGES[network]),)
    if network == "bert_base":
        return Outputs(transformers.BertModel(transformers.BertConfig())), (torch.randint(0, 30522, (1, 128)),)
    if network == "gpt2_prefill":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
        # Without a mask, sequences are looked for in the positions, in a way that one exporter does not know.
        mask = torch.ones(1, 128, dtype=torch.int64)
        return Outputs(model, use_cache=False, attention_mask=mask), (torch.randint(0, 50257, (1, 128)),)
    if network == "gpt2_decode":
        return Gpt2Step(), (torch.randint(0, 50257, (1, 1)), *[torch.randn(1, 128, 768) for _ in range(24)])
    sys.exit(f"there is no network '{network}'; there are {', '.join([*IMAGES, *TRANSFORMERS])}")


def compare(network, exporter, folder, options):
    model, inputs = model_of(network)
    path = os.path.join(folder, f"{network}_{exporter}.onnx")
    settings = {"dynamo": True, "verbose": False} if exporter == "dynamo" else {"dynamo": False, "opset_version": 17}
    torch.onnx.export(model.eval(), inputs, path, **settings)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {given.name: value.numpy() for given, value in zip(session.get_inputs(), inputs)}
    results = session.run(None, feeds)
    arrays = dict(feeds, **{output.name: result for output, result in zip(session.get_outputs(), results)})
    values = onnx.helper.make_graph([], "values", [], [], [
        onnx.numpy_helper.from_array(numpy.ascontiguousarray(array), name) for name, array in arrays.items()])
    values_path = os.path.join(folder, f"{network}_{exporter}.values.onnx")
    onnx.save(onnx.helper.make_model(values), values_path)
    command = [options.bench, path, values_path] + (["--evaluator"] if options.evaluator else [])
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(f"{network} {exporter} {result.stdout.strip()}", flush=True)
    return result.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--networks", default=",".join([*IMAGES, *TRANSFORMERS]))
    parser.add_argument("--exporters", default="script,dynamo")
    parser.add_argument("--evaluator", action="store_true")
    parser.add_argument("--folder", default="")
    options = parser.parse_args()
    works = True
    for network in options.networks.split(","):
        for exporter in options.exporters.split(","):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    works &= compare(network, exporter, options.folder or folder, options)
                except Exception as error:  # one exporter may fail on a network that the other writes
                    first_line = next(iter(str(error).splitlines()), repr(error))  # some errors have no text
                    print(f"{network} {exporter} not exported: {first_line}", flush=True)
                    works = False
    sys.exit(0 if works else 1)


if __name__ == "__main__":
    main()
