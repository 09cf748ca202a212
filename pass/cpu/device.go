package cpu

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A Config configures a device. The zero value is good.
type Config struct {
	// Threads is how many threads compute at once, over all sessions of the device.
	// 0: GOMAXPROCS.
	Threads int
	// Memory bounds the bytes of weights, buffers and workspaces. Beyond it, calls
	// return [pass.ErrOutOfMemory]. 0: the memory of the machine or the container where
	// that is known (Linux), else 64 GiB, or 2 GiB where pointers have 32 bits. Go ends
	// a program that the system denies memory, so there must be a bound.
	Memory int64
}

// Open returns a device that computes on the CPU. Its errors wrap ErrInvalid.
func Open(cfg Config) (pass.Device, error) {
	if cfg.Threads < 0 || cfg.Threads > 1<<12 {
		return nil, fmt.Errorf("cpu: open: Threads: want 0 to %d, given %d: %w", 1<<12, cfg.Threads, pass.ErrInvalid)
	}
	if cfg.Memory < 0 {
		return nil, fmt.Errorf("cpu: open: Memory: want at least 0, given %d: %w", cfg.Memory, pass.ErrInvalid)
	}
	threads := cfg.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	limit := cfg.Memory
	if limit == 0 {
		limit = machineMemory()
	}
	return backend.New(&hardware{
		pool:   newPool(threads),
		ledger: ledger{limit: limit},
		name:   processorName(),
	}), nil
}

// hardware is the CPU as package backend drives it.
type hardware struct {
	pool   *pool
	ledger ledger
	name   string
}

func (h *hardware) Info() pass.Info {
	return pass.Info{
		Backend: "cpu",
		Name:    h.name,
		API:     "go",
		Driver:  runtime.Version(),
		Kind:    "cpu",
		Memory:  h.ledger.limit,
		Threads: h.pool.size,
	}
}

// The pace of one thread until parts of runs have been timed: that of a modest laptop,
// about half of what a server core of 2023 does.
const (
	threadFLOP  = 4e9
	memoryBytes = 8e9
)

func (h *hardware) Rate() pass.Cost {
	return pass.Cost{FLOP: threadFLOP * float64(h.pool.size), Bytes: memoryBytes}
}

func (h *hardware) Load(ctx context.Context, w pass.Weights, shape pass.ParamShape) (backend.Memory, error) {
	switch w := w.(type) {
	case pass.LinearWeights:
		return loadLinear(ctx, &h.ledger, w, shape.(pass.LinearShape))
	case pass.ConvWeights:
		return loadConv(ctx, &h.ledger, w, shape.(pass.ConvShape))
	case pass.LSTMWeights:
		return loadLSTM(ctx, &h.ledger, w, shape.(pass.LSTMShape))
	case pass.NormWeights:
		return loadNorm(&h.ledger, w)
	case pass.RopeWeights:
		return loadRope(ctx, &h.ledger, w)
	case pass.Conv2DWeights:
		return loadConv2D(ctx, &h.ledger, w, shape.(pass.Conv2DShape))
	case pass.ConvGLUWeights:
		return loadConvGLU(ctx, &h.ledger, w, shape.(pass.ConvGLUShape))
	case pass.DepthwiseWeights:
		return loadDepthwise(ctx, &h.ledger, w, shape.(pass.DepthwiseShape))
	case pass.MelWeights:
		return loadMel(&h.ledger, w, shape.(pass.MelShape))
	}
	return nil, fmt.Errorf("weights %T: %w", w, pass.ErrUnsupported)
}

func (h *hardware) NewStream(pass.SessionConfig) (backend.Stream, error) {
	return &stream{h: h, team: team{pool: h.pool}}, nil
}

func (h *hardware) Close() error {
	h.pool.close()
	return nil
}

// processorName returns the model of the processor where that costs no more than a
// look: Linux has it in a file, Windows in the environment.
func processorName() string {
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	if name := os.Getenv("PROCESSOR_IDENTIFIER"); name != "" {
		return name
	}
	return runtime.GOARCH
}
