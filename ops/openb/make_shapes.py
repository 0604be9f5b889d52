#!/usr/bin/env python3
"""Writes shapes.inc: which node and pod shapes the openb trace has, and how many of each.

usage: make_shapes.py DIRECTORY_OF_THE_TRACE > shapes.inc
"""
import collections
import csv
import pathlib
import sys

HEADER = """\
// Facts about the openb trace: its distinct node and pod shapes with their counts. Written by make_shapes.py.
// Source: Alibaba cluster-trace-gpu-v2023 ("Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent", USENIX ATC 2023), openb_node_list_all_node.csv and openb_pod_list_default.csv.
// Its terms allow research and study; the files themselves are not part of this project.
"""


def rows(path, columns):
    with open(path, newline="") as file:
        counts = collections.Counter(tuple(row[c] for c in columns) for row in csv.DictReader(file))
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    trace = pathlib.Path(sys.argv[1])
    print(HEADER)
    print("// milli-CPU, MiB, GPUs, GPU model, how many")
    print("constexpr OpenbNodeShape kNodeShapes[] = {")
    for (cpu, memory, gpus, model), n in rows(trace / "openb_node_list_all_node.csv",
                                              ["cpu_milli", "memory_mib", "gpu", "model"]):
        print(f'    {{{cpu}, {memory}, {gpus}, "{model}", {n}}},')
    print("};\n")
    print("// milli-CPU, MiB, GPUs, thousandths of each GPU, QoS, how many")
    print("constexpr OpenbPodShape kPodShapes[] = {")
    for (cpu, memory, gpus, milli, qos), n in rows(trace / "openb_pod_list_default.csv",
                                                   ["cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos"]):
        print(f'    {{{cpu}, {memory}, {gpus}, {milli}, "{qos}", {n}}},')
    print("};")


main()
