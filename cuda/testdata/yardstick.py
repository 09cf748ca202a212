#!/usr/bin/env python3
"""Errors of cuBLAS, cuDNN and PyTorch's own kernels against float64, on the shapes of
TestAccuracy.

Prints, for each, the relative L2 error of PyTorch in FP32, TF32 and FP16 (operands rounded,
sums in FP32), as TestAccuracy prints those of this package, and writes them to a file if one
is named:

    python3 cuda/testdata/yardstick.py cuda/testdata/yardstick.json
    TANDEM_DEVICES=cuda go test -run TestAccuracy -v ./cuda
"""
import json
import sys
import torch
import torch.nn.functional as F

torch.manual_seed(1)
device = 'cuda'
found = {}


def precision(tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def error(got, want):
    got, want = got.double(), want.double()
    return float((got - want).norm() / want.norm())


def report(name, f, *args):
    args = [a.to(device) for a in args]
    line = f'{name:40s}'
    try:
        want = f(*[a.double() for a in args])
    except RuntimeError as e:
        print(line, type(e).__name__, str(e)[:60], flush=True)
        return
    found[name] = {}
    for label, tf32, cast in (('fp32', False, None), ('tf32', True, None), ('fp16', False, torch.half)):
        precision(tf32)
        x = [a.to(cast) if cast else a for a in args]
        try:
            found[name][label] = float(f'{error(f(*x), want):.3g}')
            line += f'  {label} {found[name][label]:.2e}'
        except RuntimeError as e:
            line += f'  {label} {type(e).__name__}'
    print(line, flush=True)


def data(kind, *shape, scale=1.0):
    x = torch.randn(*shape, dtype=torch.float64) * scale
    x = x.float()
    return x.clamp_min(0) if kind == 'relu' else x


def attention(q, k, v):
    s = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    return torch.softmax(s, -1) @ v


def causal(q, k, v):
    s = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    n = q.shape[-2]
    s = s.masked_fill(torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1), float('-inf'))
    return torch.softmax(s, -1) @ v


def relative(q, k, v, q2, p):
    n = q.shape[-2]
    rows = torch.arange(n, device=q.device)
    at = rows[None, :] - rows[:, None] + n - 1
    shifted = (q2 @ p.transpose(-1, -2)).gather(-1, at.expand(q.shape[0], n, n))
    s = (q @ k.transpose(-1, -2) + shifted) / q.shape[-1] ** 0.5
    return torch.softmax(s, -1) @ v


def lstm(x, *weights):
    """Two layers in two directions, from zeros; weights as PyTorch orders them."""
    zeros = x.new_zeros(4, x.shape[0], 128)
    return torch.lstm(x, (zeros, zeros), list(weights), True, 2, 0.0, False, True, True)[0]


def convglu(x, w, bias, gain, shift):
    y = F.glu(x, 1)
    y = F.conv1d(y, w, bias, padding=w.shape[-1] // 2, groups=w.shape[0])
    return F.silu(y * gain[:, None] + shift[:, None])


def stats(x, mask):
    """Means and deviations over the last axis, weighed."""
    w = mask.sum(-1, keepdim=True)
    mean = (x * mask).sum(-1, keepdim=True) / w
    variance = (mask * (x - mean) ** 2).sum(-1, keepdim=True) / (w - (mask ** 2).sum(-1, keepdim=True) / w)
    return torch.cat([mean, variance.sqrt()], -1)


def main():
    for rows, k, n in ((256, 384, 256), (256, 1280, 256), (256, 4096, 256), (1, 1280, 1024)):
        for kind in ('normal', 'relu'):
            report(f'gemm {rows}x{k}x{n} {kind}', lambda a, w: a @ w.T, data(kind, rows, k), data('normal', n, k))
    for kind in ('normal', 'relu'):
        report(f'conv1d 300x128 k3 {kind}', lambda x, w: F.conv1d(x, w, padding=1), data(kind, 1, 128, 300), data('normal', 64, 128, 3))
        report(f'conv2d 20x50x64 k3 {kind}', lambda x, w: F.conv2d(x, w, padding=1), data(kind, 1, 64, 20, 50), data('normal', 64, 64, 3, 3))
    report('conv1d 600x80 k3 s2', lambda x, w: F.conv1d(x, w, padding=1, stride=2), data('normal', 1, 80, 600), data('normal', 64, 80, 3))
    report('conv1d 16000x1 k251 s10', lambda x, w: F.conv1d(x, w, stride=10), data('normal', 1, 1, 16000), data('normal', 80, 1, 251))
    report('conv2d 20x50x64 k3 s2', lambda x, w: F.conv2d(x, w, padding=1, stride=2), data('normal', 1, 64, 20, 50), data('normal', 128, 64, 3, 3))
    report('conv2d 20x50x64 k1 s2', lambda x, w: F.conv2d(x, w, stride=2), data('normal', 1, 64, 20, 50), data('normal', 128, 64, 1, 1))
    report('depthwiseconv2d 51x40x64', lambda x, w: F.conv2d(x, w, padding=1, stride=2, groups=64), data('normal', 1, 64, 51, 40), data('normal', 64, 1, 3, 3))
    report('convglu 300x256 k9', convglu, data('normal', 1, 512, 300), data('normal', 256, 1, 9), *(data('normal', 256) for _ in range(3)))
    report('attention 300x4x64', attention, *(data('normal', 4, 300, 64) for _ in range(3)))
    report('attention 300x4x64 causal', causal, *(data('normal', 4, 300, 64) for _ in range(3)))
    report('attention 200x2x128 relative', relative, *(data('normal', 2, 200, 128) for _ in range(4)), data('normal', 2, 399, 128))
    weights = []
    for width in (60, 256):
        for _ in range(2):
            weights += [data('normal', 512, width, scale=0.1), data('normal', 512, 128, scale=0.1), data('normal', 512), torch.zeros(512)]
    report('lstm 4x100 60x128', lstm, data('normal', 4, 100, 60), *weights)
    gain, bias = data('normal', 1280), data('normal', 1280)
    report('layernorm 300x1280', lambda x, g, b: F.layer_norm(x, (1280,), g, b), data('normal', 300, 1280), gain, bias)
    report('groupnorm 400x288', lambda x, g, b: F.group_norm(x, 1, g, b), data('normal', 1, 288, 400), gain[:288], bias[:288])
    report('poolnorm 3000x80', lambda x, g, b: F.instance_norm(x, weight=g, bias=b), data('normal', 1, 80, 3000), gain[:80], bias[:80])
    report('l2norm 200x256', lambda x: F.normalize(x, dim=-1), data('normal', 200, 256))
    report('softmax 200x1500', lambda x: torch.softmax(x, -1), data('normal', 200, 1500))
    report('logsoftmax 200x1500', lambda x: torch.log_softmax(x, -1), data('normal', 200, 1500))
    report('gelu 300x1280', F.gelu, data('normal', 300, 1280))
    report('silu 300x1280', F.silu, data('normal', 300, 1280))
    report('glu 300x1280', lambda x: F.glu(x, -1), data('normal', 300, 2560))
    report('statspool 10x100x64', stats, data('normal', 640, 100), torch.rand(100).float())
    if len(sys.argv) > 1:
        with open(sys.argv[1], 'w') as f:
            json.dump(found, f, indent=1)
            f.write('\n')


main()
