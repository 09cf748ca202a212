package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
)

// conv1DCases are convolutions of speech networks: the two that Whisper begins with (its
// smallest and its largest, 30 seconds), and the spectrum and the first layer of the
// encoder of Silero, for 1024 chunks at once.
var conv1DCases = []benchmarkCase{
	conv("spectrum", pass.Conv1D{Batch: 1024, In: 576, Stride: 128, PadRight: 64, Padding: pass.PadReflect}, pass.ConvShape{Out: 258, In: 1, Kernel: 256}),
	conv("encoder", pass.Conv1D{Batch: 1024, In: 4, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU}, pass.ConvShape{Out: 128, In: 129, Kernel: 3}),
	conv("whisper-tiny-1", pass.Conv1D{In: 3000, PadLeft: 1, PadRight: 1, Epilogue: pass.GELU}, pass.ConvShape{Out: 384, In: 80, Kernel: 3}),
	conv("whisper-tiny-2", pass.Conv1D{In: 3000, Stride: 2, PadLeft: 1, PadRight: 1, Epilogue: pass.GELU}, pass.ConvShape{Out: 384, In: 384, Kernel: 3}),
	conv("whisper-large-1", pass.Conv1D{In: 3000, PadLeft: 1, PadRight: 1, Epilogue: pass.GELU}, pass.ConvShape{Out: 1280, In: 128, Kernel: 3}),
	conv("whisper-large-2", pass.Conv1D{In: 3000, Stride: 2, PadLeft: 1, PadRight: 1, Epilogue: pass.GELU}, pass.ConvShape{Out: 1280, In: 1280, Kernel: 3}),
}

func conv(name string, op pass.Conv1D, w pass.ConvShape) benchmarkCase {
	shape := fmt.Sprintf("%d×%d steps, %d→%d, kernel %d, stride %d", max(op.Batch, 1), op.In, w.In, w.Out, w.Kernel, max(op.Stride, 1))
	return kernelCase(name, shape, kernel.Conv1D(op, w))
}
