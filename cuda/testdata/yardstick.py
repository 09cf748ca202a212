#!/usr/bin/env python3
"""Errors of cuBLAS and cuDNN against float64, on the shapes of TestAccuracy.

Prints, for each shape and kind of data, the relative L2 error of PyTorch in FP32, TF32 and
FP16 (operands rounded, sums in FP32), as TestAccuracy prints those of this package:

    python3 cuda/testdata/yardstick.py
    TANDEM_DEVICES=cuda go test -run TestAccuracy -v ./cuda
"""
import torch
import torch.nn.functional as F

torch.manual_seed(1)
device = 'cuda'


def precision(tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def error(got, want):
    got, want = got.double(), want.double()
    return float((got - want).norm() / want.norm())


def report(name, f, *args):
    args = [a.to(device) for a in args]
    want = f(*[a.double() for a in args])
    line = f'{name:40s}'
    for label, tf32, cast in (('fp32', False, None), ('tf32', True, None), ('fp16', False, torch.half)):
        precision(tf32)
        x = [a.to(cast) if cast else a for a in args]
        try:
            line += f'  {label} {error(f(*x), want):.2e}'
        except RuntimeError as e:
            line += f'  {label} {type(e).__name__}'
    print(line, flush=True)


def data(kind, *shape):
    x = torch.randn(*shape, dtype=torch.float64).float()
    return x.clamp_min(0) if kind == 'relu' else x


def attention(q, k, v):
    s = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    return torch.softmax(s, -1) @ v


def main():
    for rows, k, n in ((256, 384, 256), (256, 1280, 256), (256, 4096, 256), (1, 1280, 1024)):
        for kind in ('normal', 'relu'):
            report(f'gemm {rows}x{k}x{n} {kind}', lambda a, w: a @ w.T, data(kind, rows, k), data('normal', n, k))
    for kind in ('normal', 'relu'):
        report(f'conv1d 300x128 k3 {kind}', lambda x, w: F.conv1d(x, w, padding=1), data(kind, 1, 128, 300), data('normal', 64, 128, 3))
        report(f'conv2d 20x50x64 k3 {kind}', lambda x, w: F.conv2d(x, w, padding=1), data(kind, 1, 64, 20, 50), data('normal', 64, 64, 3, 3))
    report('attention 300x4x64', attention, *(data('normal', 4, 300, 64) for _ in range(3)))


main()
