package main

import (
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
)

// A work is an op that there may be several ways to compute.
type work struct {
	name string
	kernel.Kernel
}

// mostTruth is how many operations the check of an op may take in float64, which is about
// a second.
const mostTruth = 1e9

// workList lists the ops of speech networks that take most of their time, in the sizes
// that they have for the audio that the networks are used with: 30 seconds for Whisper,
// 10 for others, and 2 minutes for conformers.
func workList() []work {
	all := slices.Concat(sileroWork(), speakerWork(), conformerWork(), whisperWork(), moonshineWork())
	for i := range all {
		all[i].Bound = mostTruth
	}
	return all
}

// gemm is a product with weights of each type that matters: that of a few rows depends on
// how weights are stored, others on whether they are halves.
func gemm(network string, rows, k, n int) []work {
	types := []pass.DType{pass.F16, pass.F32}
	if rows <= 8 {
		types = append(types, pass.Q8_0)
	}
	var all []work
	for _, t := range types {
		all = append(all, work{fmt.Sprintf("%s/gemm/%dx%dx%d/%v", network, rows, k, n, t), kernel.Gemm(rows, k, n, t)})
	}
	return all
}

func attention(network string, queries, keys, heads, dim int) work {
	return work{fmt.Sprintf("%s/attention/%dx%dx%dx%d", network, queries, keys, heads, dim), kernel.Attention(1, queries, keys, heads, dim)}
}

func conv(network string, op pass.Conv1D, out, in, taps int, t pass.DType) work {
	name := fmt.Sprintf("%s/conv1d/%dx%dto%d-k%ds%d/%v", network, max(op.Batch, 1)*op.In, in, out, taps, max(op.Stride, 1), t)
	return work{name, kernel.Conv1D(op, pass.ConvShape{Out: out, In: in, Kernel: taps, Type: t})}
}

// layers are the products of a transformer's layer of so many rows.
func layers(network string, rows, width, hidden int) []work {
	return slices.Concat(
		gemm(network, rows, width, 3*width), gemm(network, rows, width, width),
		gemm(network, rows, width, hidden), gemm(network, rows, hidden, width),
	)
}

// whisperWork is the encoder of each size, and decoding: prompts of up to 32 tokens, single
// tokens, and the vocabulary.
func whisperWork() []work {
	var all []work
	for _, s := range []struct {
		name                      string
		width, heads, mels, words int
	}{{"tiny", 384, 6, 80, 51864}, {"base", 512, 8, 80, 51864}, {"small", 768, 12, 80, 51865}, {"large", 1280, 20, 128, 51866}} {
		network := "whisper-" + s.name
		const steps, prompt = 1500, 32
		pad := pass.Conv1D{In: 2 * steps, PadLeft: 1, PadRight: 1, Epilogue: pass.GELU}
		halve := pad
		halve.Stride = 2
		for _, t := range []pass.DType{pass.F16, pass.F32} {
			all = append(all, conv(network, pad, s.width, s.mels, 3, t), conv(network, halve, s.width, s.width, 3, t))
		}
		all = append(all, layers(network, steps, s.width, 4*s.width)...)
		all = append(all, gemm(network, steps, s.width, 2*s.width)...) // keys and values of cross-attention
		all = append(all, attention(network, steps, steps, s.heads, 64))
		all = append(all, layers(network, prompt, s.width, 4*s.width)...)
		all = append(all, attention(network, prompt, steps, s.heads, 64), attention(network, prompt, prompt, s.heads, 64))
		all = append(all, layers(network, 1, s.width, 4*s.width)...)
		all = append(all, gemm(network, 1, s.width, s.words)...)
	}
	return all
}

// moonshineWork is the encoder for 10 seconds, and decoding.
func moonshineWork() []work {
	var all []work
	for _, s := range []struct {
		name         string
		width, heads int
	}{{"tiny", 288, 8}, {"base", 416, 8}} {
		network := "moonshine-" + s.name
		const samples, first, second, frames = 160000, 2499, 831, 415
		for _, t := range []pass.DType{pass.F16, pass.F32} {
			all = append(all,
				conv(network, pass.Conv1D{In: samples, Stride: 64, Epilogue: pass.Tanh}, s.width, 1, 127, t),
				conv(network, pass.Conv1D{In: first, Stride: 3, Epilogue: pass.GELU}, 2*s.width, s.width, 7, t),
				conv(network, pass.Conv1D{In: second, Stride: 2, Epilogue: pass.GELU}, s.width, 2*s.width, 3, t))
		}
		all = append(all, layers(network, frames, s.width, 4*s.width)...)
		all = append(all, attention(network, frames, frames, s.heads, s.width/s.heads))
		all = append(all, layers(network, 1, s.width, 4*s.width)...)
		all = slices.Concat(all, gemm(network, 1, s.width, 8*s.width), gemm(network, 1, s.width, 32768))
	}
	return all
}

// conformerWork is Parakeet 0.6B and GigaAM v3.
func conformerWork() []work {
	var all []work
	for _, s := range []struct {
		name                       string
		frames, width, heads, taps int
		relative                   bool
	}{
		{"parakeet-10s", 126, 1024, 8, 9, true}, {"parakeet-2min", 1501, 1024, 8, 9, true},
		{"gigaam-10s", 251, 768, 16, 5, false}, {"gigaam-2min", 3001, 768, 16, 5, false},
	} {
		all = append(all, layers(s.name, s.frames, s.width, 4*s.width)...)
		all = append(all, gemm(s.name, s.frames, s.width, 2*s.width)...)
		all = append(all, work{fmt.Sprintf("%s/convglu/%dx%d-k%d", s.name, s.frames, s.width, s.taps), kernel.ConvGLU(s.frames, s.width, s.taps)})
		dim := s.width / s.heads
		if s.relative {
			all = append(all, gemm(s.name, 2*s.frames-1, s.width, s.width)...) // positions
			all = append(all, work{fmt.Sprintf("%s/attention/relative-%dx%dx%d", s.name, s.frames, s.heads, dim), kernel.RelativeAttention(s.frames, s.heads, dim)})
			features := 8*(s.frames-1) + 1
			all = append(all, work{fmt.Sprintf("%s/depthwise/%dx128x256", s.name, features), kernel.FirstDepthwise(features, 128, 256)})
			continue
		}
		all = append(all, attention(s.name, s.frames, s.frames, s.heads, dim))
		features := 4*(s.frames-1) + 1
		halve := pass.Conv1D{In: features, Stride: 2, PadLeft: 2, PadRight: 2, Epilogue: pass.ReLU}
		all = append(all, conv(s.name, halve, s.width, 64, 5, pass.F16))
		halve.In = features/2 + 1
		all = append(all, conv(s.name, halve, s.width, s.width, 5, pass.F16))
	}
	return all
}

// speakerWork is pyannote's segmentation and WeSpeaker's ResNet34 for 10 seconds, and GE2E.
func speakerWork() []work {
	lstm := func(network string, batch, steps int, s pass.LSTMShape) work {
		name := fmt.Sprintf("%s/lstm/%dx%d-%dto%d-l%dd%d", network, batch, steps, s.In, s.Hidden, s.Layers, s.Directions)
		return work{name, kernel.LSTM(batch, steps, s)}
	}
	images := func(op pass.Conv2D, out, in, size int) work {
		name := fmt.Sprintf("wespeaker/conv2d/%dx%dx%dto%d-k%ds%d", op.Height, op.Width, in, out, size, max(op.Stride, 1))
		return work{name, kernel.Conv2D(op, out, in, size)}
	}
	segmentation := pass.LSTMShape{In: 60, Hidden: 128, Layers: 4, Directions: 2}
	ge2e := pass.LSTMShape{In: 40, Hidden: 256, Layers: 3, Directions: 1}
	all := []work{
		conv("segmentation", pass.Conv1D{In: 160000, Stride: 10, Abs: true, Pool: 3}, 80, 1, 251, pass.F32),
		conv("segmentation", pass.Conv1D{In: 5325, Pool: 3}, 60, 80, 5, pass.F32),
		conv("segmentation", pass.Conv1D{In: 1773, Pool: 3}, 60, 60, 5, pass.F32),
		lstm("segmentation", 1, 589, segmentation), lstm("segmentation", 32, 589, segmentation),
		lstm("ge2e", 1, 160, ge2e), lstm("ge2e", 32, 160, ge2e),
		images(pass.Conv2D{Height: 80, Width: 998, ReLU: true}, 32, 1, 3),
	}
	all = append(all, gemm("segmentation", 589, 256, 128)...)
	for _, s := range []struct{ height, width, channels int }{{80, 998, 32}, {40, 499, 64}, {20, 250, 128}, {10, 125, 256}} {
		same := pass.Conv2D{Height: s.height, Width: s.width, ReLU: true}
		all = append(all, images(same, s.channels, s.channels, 3))
		if s.channels < 256 {
			same.Stride = 2
			all = append(all, images(same, 2*s.channels, s.channels, 3), images(same, 2*s.channels, s.channels, 1))
		}
	}
	return all
}

// sileroWork is the voice activity detector for a chunk of one stream, of 256 streams, and
// for 1024 chunks of a file.
func sileroWork() []work {
	var all []work
	for _, chunks := range []int{1, 256, 1024} {
		network := "silero-" + fmt.Sprint(chunks)
		pad := pass.Conv1D{Batch: chunks, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU}
		layer := func(in, stride, from, to int) work {
			pad.In, pad.Stride = in, stride
			return conv(network, pad, to, from, 3, pass.F32)
		}
		all = append(all,
			conv(network, pass.Conv1D{Batch: chunks, In: 576, Stride: 128, PadRight: 64, Padding: pass.PadReflect}, 258, 1, 256, pass.F32),
			layer(4, 1, 129, 128), layer(4, 2, 128, 64), layer(2, 2, 64, 64), layer(1, 1, 64, 128))
	}
	for _, at := range [][2]int{{1, 1}, {256, 1}, {1, 1024}} {
		name := fmt.Sprintf("silero/lstm/%dx%d-128to128-l1d1", at[0], at[1])
		all = append(all, work{name, kernel.LSTM(at[0], at[1], pass.LSTMShape{In: 128, Hidden: 128, Layers: 1, Directions: 1})})
	}
	return all
}
