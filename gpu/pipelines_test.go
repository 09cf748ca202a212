package gpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// counting counts what is compiled.
type counting struct {
	driver.Device
	pipelines atomic.Int32
	fail      error // of the next one
}

func (c *counting) CreatePipeline(d driver.PipelineDesc) (driver.PipelineID, error) {
	c.pipelines.Add(1)
	if err := c.fail; err != nil {
		c.fail = nil
		return 0, err
	}
	return c.Device.CreatePipeline(d)
}

func TestKernelsAreCompiledOnce(t *testing.T) {
	t.Parallel()
	c := &counting{}
	r := memoryRig(t, drivertest.Config{}, options{}, func(d driver.Device) driver.Device { c.Device = d; return c })
	k := r.hw.kernels
	want := kernel{shader: "fill", entry: "fill"}
	var all sync.WaitGroup
	got := make([]*pipeline, 16)
	for i := range got {
		all.Go(func() { got[i], _ = k.get(want, false) })
	}
	all.Wait()
	for _, p := range got {
		require.NotNil(t, p)
		require.Same(t, got[0], p)
	}
	require.EqualValues(t, 1, c.pipelines.Load())
	other, err := k.get(kernel{shader: "fill", entry: "fill"}, true)
	require.NoError(t, err)
	require.NotSame(t, got[0], other, "other bindings are another pipeline")
	third, err := k.get(kernel{shader: "fill", entry: "fill", values: shaders.Values{"Unused": 1}}, false)
	require.NoError(t, err)
	require.Same(t, got[0], third, "the text is the same")
	n, took := k.count()
	require.Equal(t, 2, n)
	require.Positive(t, took)
}

func TestKernelThatDoesNotCompile(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		r.hw.kernels.expand = func(name string, v shaders.Values) (string, error) {
			return "fn broken( {\n", nil
		}
		_, err := r.hw.kernels.get(kernel{shader: "gemm", entry: "broken", values: shaders.Values{"Tile": 8}})
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "kernel gemm.broken[Tile:8]: ")
		r.hw.kernels.expand = shaders.Expand
		_, err = r.hw.kernels.get(kernel{shader: "nothing", entry: "main"})
		require.ErrorIs(t, err, pass.ErrInvalid)
	})
}

// A library may quote the whole shader: the first lines say what is wrong.
func TestCompilerMessageIsCut(t *testing.T) {
	t.Parallel()
	c := &counting{fail: fmt.Errorf("line 1: no such thing\n%s: %w", strings.Repeat("// a long shader\n", 500), pass.ErrInvalid)}
	r := memoryRig(t, drivertest.Config{}, options{}, func(d driver.Device) driver.Device { c.Device = d; return c })
	_, err := r.hw.kernels.get(kernel{shader: "fill", entry: "fill"}, false)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "kernel fill.fill[]: line 1: no such thing")
	require.Less(t, len(err.Error()), briefLength+100)
}

// What failed for want of memory is tried again.
func TestKernelFailureIsNotKept(t *testing.T) {
	t.Parallel()
	c := &counting{fail: pass.ErrOutOfMemory}
	r := memoryRig(t, drivertest.Config{}, options{}, func(d driver.Device) driver.Device { c.Device = d; return c })
	want := kernel{shader: "fill", entry: "fill"}
	_, err := r.hw.kernels.get(want)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	_, err = r.hw.kernels.get(want)
	require.NoError(t, err)
}

func TestDumpAndInfo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		_, rec := recordChain(t, r, 3)
		var text strings.Builder
		require.NoError(t, rec.Dump(&text))
		require.Contains(t, text.String(), `recording "chain" on gpu: exact, 3 ops, 1 inputs, 1 outputs`)
		require.Contains(t, text.String(), "workspace: 2 buffers of 4096 bytes in all, 0 of them scratch; largest set alive 4096 bytes; the session's workspace has 4096 bytes")
		require.Contains(t, text.String(), "kernels: 1 used here")
		require.Contains(t, text.String(), "submission: 3 dispatches and 1 marks, 3 bind groups; 2048 bytes of inputs, 16 of outputs, 768 of constants")
		require.Contains(t, text.String(), "   2 copy         copy.copy[] grid 8×1×1, 3 operands of 4112 bytes")

		info := r.Info()
		require.Equal(t, "gpu", info.Backend)
		require.NotEmpty(t, info.Name)
		require.Contains(t, info.Limits, pass.Limit{Name: "storage bindings", Value: int64(r.hw.limits.MaxStorageBuffers)})
		require.Equal(t, r.hw.mapped, info.Variants[1].Used)
		require.NotEmpty(t, info.Variants[1].Reason)
	})
}

// Loading ends with its context, and leaves nothing.
func TestLoadIsCancelled(t *testing.T) {
	t.Parallel()
	for _, features := range []driver.Feature{0, driver.FeatureMappedStorage} {
		r := memoryRig(t, drivertest.Config{Features: features}, options{}, nil)
		require.NoError(t, work(r))
		before := r.fake.Ledger()
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("changed my mind")
		w := pass.LinearWeights{Name: "w", Parts: []pass.Tensor{{
			Name: "w", Type: pass.F32, Shape: []int{1024, 4096}, Data: cancelsAfter{1 << 20, func() { cancel(why) }},
		}}}
		_, err := r.Load(ctx, w)
		require.ErrorIs(t, err, why)
		after := r.fake.Ledger()
		require.Equal(t, before.BindGroups, after.BindGroups)
		require.LessOrEqual(t, after.Bytes, before.Bytes+4*stagingSlots*slotWords)
		require.NoError(t, work(r))
	}
}

// cancelsAfter reads as zeros and calls f when it is read beyond some offset.
type cancelsAfter struct {
	offset int64
	f      func()
}

func (c cancelsAfter) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > c.offset {
		c.f()
	}
	clear(p)
	return len(p), nil
}

// stopping ends a context when a kernel is compiled.
type stopping struct {
	driver.Device
	cancel    context.CancelFunc
	pipelines int
}

func (s *stopping) CreatePipeline(d driver.PipelineDesc) (driver.PipelineID, error) {
	s.cancel()
	s.pipelines++
	return s.Device.CreatePipeline(d)
}

// Compiling may take seconds; it ends between two kernels.
func TestRecordIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	w := &stopping{cancel: cancel}
	r := memoryRig(t, drivertest.Config{}, options{}, func(d driver.Device) driver.Device { w.Device = d; return w })
	r.hw.compile, r.hw.kernels.expand = (*compiler).compile, shaders.Expand
	s, err := r.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	_, err = s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
		x, y := p.Temp(pass.F32, 4), p.Temp(pass.F32, 4)
		p.Do(fillWith(x.View(), 4, 0), dense(x.View(), y.View(), 4))
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, w.pipelines)
}

// A replay allocates what the driver does, whatever the number of dispatches.
func TestReplayAllocations(t *testing.T) {
	r := vulkanRig(t, driver.DeviceConfig{}, options{}, nil)
	few, _ := recordChain(t, r, 1)
	many, _ := recordChain(t, r, 200)
	few()
	many()
	a, b := testing.AllocsPerRun(50, few), testing.AllocsPerRun(50, many)
	for range 4 { // the runtime and the driver allocate now and then, too
		a, b = min(a, testing.AllocsPerRun(50, few)), min(b, testing.AllocsPerRun(50, many))
	}
	t.Logf("a run of 1 dispatch: %v allocations, of 200: %v", a, b)
	require.InDelta(t, a, b, 3)
	require.LessOrEqual(t, a, 12.0)
}
