#!/usr/bin/env python3
"""Times of PyTorch (cuBLAS, cuDNN, its own kernels) for the building blocks that
examples/bench measures, on the same GPU: warm, as CUDA graphs, medians, the best of its
configurations.

    python3 cuda/testdata/rivals.py
    go run ./examples/bench --device cuda --math fast

With --rest, each after half a second of rest instead, as bench does with --rest 500ms --time 20ms;
with an argument beside, only what is named so at its beginning.
"""
import sys
import time
import torch
import torch.nn.functional as F
from torch.nn.attention import sdpa_kernel, SDPBackend

device = 'cuda'
rest = '--rest' in sys.argv[1:]
only = ([a for a in sys.argv[1:] if a != '--rest'] or [''])[0]
torch.backends.cudnn.benchmark = True


def graph_time(fn, runs=15, inner=10):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            fn()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(inner):
            fn()
    if rest:
        time.sleep(0.5)
    end = time.time() + 0.1
    while not rest and time.time() < end:
        graph.replay()
        torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        graph.replay()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b) / inner)
    return sorted(times)[len(times) // 2]


def report(name, fns, flop=0.0, size=0.0):
    best = None
    for fn in fns if name.startswith(only) else ():
        try:
            t = graph_time(fn)
            best = t if best is None else min(best, t)
        except Exception as e:  # a configuration that this version does not have
            print(f'{name}: {type(e).__name__}: {str(e)[:80]}')
    if best is None:
        return
    line = f'{name:44s} {best * 1e3:9.2f} us'
    if flop:
        line += f'  {flop / best / 1e9:7.1f} TFLOP/s'
    if size:
        line += f'  {size / best / 1e6:7.0f} GB/s'
    print(line, flush=True)


def data(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=device, dtype=dtype)


def precision(tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), torch.cuda.get_device_name())
with torch.no_grad():
    for label, dtype, tf32 in (('fp16', torch.half, False), ('tf32', torch.float32, True), ('fp32', torch.float32, False)):
        precision(tf32)
        for rows, k, n in ((512, 512, 512), (1500, 384, 1536), (1500, 1280, 5120), (4096, 4096, 4096)):
            a, w, b = data(rows, k, dtype=dtype), data(n, k, dtype=dtype), data(n, dtype=dtype)
            report(f'gemm {rows}x{k}x{n} {label}', [lambda: F.linear(a, w, b)], 2 * rows * k * n)
            if dtype == torch.half:  # ours are F32
                report(f'gemm {rows}x{k}x{n} fp16, fp32 results', [lambda: torch.mm(a, w.t(), out_dtype=torch.float32)], 2 * rows * k * n)
    precision(False)
    for n, k in ((1280, 1280), (51865, 1280)):
        x, w = data(1, k, dtype=torch.half), data(n, k, dtype=torch.half)
        report(f'matvec {n}x{k} fp16', [lambda: F.linear(x, w), lambda: x @ w.t()], 0, 2 * n * k)
    for label, dtype in (('fp16', torch.half), ('fp32', torch.float32)):
        x, g = data(1500, 1280, dtype=dtype), data(1280, dtype=dtype)
        up, down, b1, b2 = data(5120, 1280, dtype=dtype) * 0.02, data(1280, 5120, dtype=dtype) * 0.02, data(5120, dtype=dtype), data(1280, dtype=dtype)

        def forward():
            return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (1280,), g, g), up, b1)), down, b2)
        report(f'feed forward 1500x1280x5120 {label}', [forward, torch.compile(forward)], 4 * 1500 * 1280 * 5120)
    for batch, heads, frames, dim in ((1, 20, 1500, 64), (4, 16, 4096, 64), (1, 16, 16384, 128)):
        q, k, v = (data(batch, heads, frames, dim, dtype=torch.half) for _ in range(3))

        def run(kind):
            def f():
                with sdpa_kernel(kind):
                    F.scaled_dot_product_attention(q, k, v)
            return f
        report(f'attention {batch}x{frames} {heads}x{dim} fp16', [run(SDPBackend.FLASH_ATTENTION), run(SDPBackend.CUDNN_ATTENTION)],
               4 * batch * heads * frames * frames * dim)
    q, k, v = (data(1, 20, 1500, 64) for _ in range(3))
    report('attention 1x1500 20x64 fp32', [lambda: F.scaled_dot_product_attention(q, k, v)], 4 * 20 * 1500 * 1500 * 64)
    x, g = data(1500, 1280), data(1280)
    report('layer norm 1500x1280', [lambda: F.layer_norm(x, (1280,), g, g)], 0, 8 * 1500 * 1280)
    x = data(12000, 1500)
    report('softmax 12000x1500', [lambda: F.softmax(x, -1)], 0, 8 * 12000 * 1500)
    x = data(1, 51865)
    report('argmax 1x51865', [lambda: x.argmax(-1)])
    x = data(1500, 8192)
    report('swiglu 1500x2x4096', [torch.compile(lambda: F.silu(x[:, 4096:]) * x[:, :4096]), lambda: F.silu(x[:, 4096:]) * x[:, :4096]],
           0, 12 * 1500 * 4096)
    x, g = data(1, 288, 2499), data(288)
    report('group norm 1 group 288x2499', [lambda: F.group_norm(x, 1, g, g)], 0, 8 * 288 * 2499)
    for batch in (1, 32):
        for label, tf32, dtype in (('fp32', False, torch.float32), ('tf32', True, torch.float32), ('fp16', False, torch.half)):
            precision(tf32)
            net = torch.nn.LSTM(60, 128, 4, bidirectional=True, batch_first=True).to(device, dtype).eval()
            x = data(batch, 589, 60, dtype=dtype)
            report(f'bilstm 4x128 b{batch} {label}', [lambda: net(x)])
    precision(False)
    for label, dtype in (('fp32', torch.float32), ('fp16', torch.half)):
        x, w, b = data(1, 64, 40, 500, dtype=dtype), data(64, 64, 3, 3, dtype=dtype), data(64, dtype=dtype)
        xl, wl = x.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
        report(f'conv2d 64x40x500 k3 {label}', [lambda: F.conv2d(x, w, b, padding=1), lambda: F.conv2d(xl, wl, b, padding=1)],
               2 * 9 * 64 * 64 * 40 * 500)
        x, w, b = data(1, 1280, 3000, dtype=dtype), data(1280, 1280, 3, dtype=dtype), data(1280, dtype=dtype)
        report(f'conv1d 1280x3000 k3 s2 {label}', [lambda: F.conv1d(x, w, b, stride=2, padding=1)], 2 * 3 * 1280 * 1280 * 1500)
