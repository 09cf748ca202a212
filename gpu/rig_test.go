package gpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
	"github.com/tandem-gpu/tandem/shaders"
)

// A rig is a device whose op families are replaced by two kernels that have a double in
// Go, so that the same test runs on a device in memory that fails on demand and on a
// real one. Fill and Copy of dense rows are the ops it knows, and the double of a Copy's
// row index is what sets the status word.
type rig struct {
	pass.Device
	hw   *device
	fake *drivertest.Device // nil on a real device
	left driver.Ledger      // what was alive when the driver's device was closed

	mu      sync.Mutex
	streams []*stream // in the order in which they were opened
}

// observed is the device of a rig, which lists the streams that are opened.
type observed struct {
	*device
	r *rig
}

func (o observed) NewStream(cfg pass.SessionConfig) (backend.Stream, error) {
	s, err := o.device.NewStream(cfg)
	if err == nil {
		o.r.mu.Lock()
		o.r.streams = append(o.r.streams, s.(*stream))
		o.r.mu.Unlock()
	}
	return s, err
}

// lastLook records what is alive when a device is closed.
type lastLook struct {
	driver.Device
	r *rig
}

func (l *lastLook) Close() error {
	l.r.left = l.Device.Ledger()
	return l.Device.Close()
}

func newRig(t testing.TB, drv driver.Device, a driver.Adapter, opt options, wrap func(driver.Device) driver.Device) *rig {
	r := &rig{}
	if wrap != nil {
		drv = wrap(drv)
	}
	r.hw = newHardware(&lastLook{drv, r}, a, opt)
	r.hw.compile = rigCompile
	r.hw.kernels.expand = rigExpand
	r.Device = backend.New(observed{r.hw, r})
	t.Cleanup(func() {
		r.Close()
		r.left.InFlight = 0
		require.Zero(t, r.left, "what was alive when the device was closed")
		require.Zero(t, drv.Ledger(), "what is alive after")
	})
	return r
}

// memoryRig is a rig on a device in memory.
func memoryRig(t testing.TB, cfg drivertest.Config, opt options, wrap func(driver.Device) driver.Device) *rig {
	cfg.Kernels = map[string]drivertest.Kernel{"mark": markDouble, "fill": fillDouble, "copy": copyDouble}
	fake := drivertest.New(cfg)
	r := newRig(t, fake, driver.Adapter{Name: "memory", API: driver.OtherAPI}, opt, wrap)
	r.fake = fake
	return r
}

// providerUnderTest is the one that TANDEM_PROVIDER and its like choose.
var providerUnderTest = sync.OnceValues(func() (driver.Provider, error) {
	r, err := Config{}.resolve(os.Getenv)
	if err != nil {
		return nil, err
	}
	return newProvider(r)
})

// onHardware reports whether the adapter under test is a GPU: if TANDEM_DEVICES names
// "gpu". Otherwise it is a software adapter.
func onHardware() bool {
	return slices.Contains(strings.Split(os.Getenv("TANDEM_DEVICES"), ","), "gpu")
}

// testAdapter returns the Vulkan adapter under test. Tests that need it are skipped where
// there is none, unless TANDEM_REQUIRE_GPU is set.
func testAdapter(t testing.TB) (driver.Provider, driver.Adapter) {
	p, err := providerUnderTest()
	var list []driver.Adapter
	if err == nil {
		list, err = p.Adapters(context.Background())
	}
	for _, a := range list {
		if (kindOf(a) == kindSoftware) != onHardware() && a.API == driver.Vulkan {
			return p, a
		}
	}
	if os.Getenv("TANDEM_REQUIRE_GPU") != "" {
		t.Fatalf("no Vulkan adapter to test on among %d: %v", len(list), err)
	}
	t.Skipf("SKIPPED: no Vulkan adapter to test on among %d (%v); install libvulkan1 and mesa-vulkan-drivers", len(list), err)
	panic("not reached")
}

// vulkanRig is a rig on the Vulkan adapter under test.
func vulkanRig(t testing.TB, cfg driver.DeviceConfig, opt options, wrap func(driver.Device) driver.Device) *rig {
	p, a := testAdapter(t)
	if lacking := cfg.Features &^ a.Features; lacking != 0 {
		t.Skipf("SKIPPED: %s (%s) has no %v", a.Name, a.API, lacking)
	}
	drv, err := p.Open(context.Background(), a.Index, cfg)
	require.NoError(t, err)
	return newRig(t, drv, a, opt, wrap)
}

// onEach runs a test on a device in memory and on software Vulkan, each with staged and
// with mapped uploads.
func onEach(t *testing.T, test func(t *testing.T, r *rig)) {
	for _, mapped := range []bool{false, true} {
		features, name := driver.Feature(0), "staged"
		if mapped {
			features, name = driver.FeatureMappedStorage, "mapped"
		}
		t.Run("memory/"+name, func(t *testing.T) {
			t.Parallel()
			test(t, memoryRig(t, drivertest.Config{Features: features}, options{}, nil))
		})
		t.Run("vulkan/"+name, func(t *testing.T) {
			t.Parallel()
			test(t, vulkanRig(t, driver.DeviceConfig{Features: features}, options{}, nil))
		})
	}
}

const rigHead = `@group(0) @binding(0) var<uniform> words: array<vec4<u32>, 16>;
`

var rigShaders = map[string]string{
	"fill": rigHead + `@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64) fn fill(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < words[0].y) { to[words[0].x + id.x] = words[0].z; }
}`,
	"copy": rigHead + `@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> to: array<u32>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;
@compute @workgroup_size(64) fn copy(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < words[0].z) {
		let x = source[words[0].x + id.x];
		to[words[0].y + id.x] = x;
		if (x > words[0].w) { atomicOr(&status[0], 1u); }
	}
}`,
}

func rigExpand(name string, v shaders.Values) (string, error) {
	if text, ok := rigShaders[name]; ok {
		return text, nil
	}
	return shaders.Expand(name, v)
}

// rigLimit is the largest word that Copy passes on without an error; the highest is
// for tests to raise one.
const rigLimit = 0xfffffffe

func rigCompile(c *compiler) error {
	for _, s := range c.plan.Steps {
		c.step = s
		var err error
		switch op := s.Op.(type) {
		case pass.Fill:
			to, shift := c.bind(op.To.Buffer, op.To.Offset, op.To.Offset+op.Cols, true)
			err = c.emit("fill", kernel{shader: "fill", entry: "fill"}, []operand{to},
				[]uint32{shift, uint32(op.Cols), op.Word}, [3]int{(op.Cols + 63) / 64, 1, 1}, s.Cost)
		case pass.Copy:
			from, x := c.bind(op.From.Buffer, op.From.Offset, op.From.Offset+op.Cols, false)
			to, y := c.bind(op.To.Buffer, op.To.Offset, op.To.Offset+op.Cols, true)
			err = c.emit("copy", kernel{shader: "copy", entry: "copy"}, []operand{from, to, c.status()},
				[]uint32{x, y, uint32(op.Cols), rigLimit}, [3]int{(op.Cols + 63) / 64, 1, 1}, s.Cost)
		default:
			err = fmt.Errorf("%s: %w", op.Name(), pass.ErrUnsupported)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func word(b []byte, i int) uint32       { return binary.LittleEndian.Uint32(b[4*i:]) }
func setWord(b []byte, i int, v uint32) { binary.LittleEndian.PutUint32(b[4*i:], v) }

func markDouble(c drivertest.Call) {
	b := c.Buffers[0]
	setWord(b, wordKept, word(b, wordKept)|word(b, wordStatus))
	setWord(b, wordStatus, 0)
	setWord(b, wordCount, word(b, wordCount)+1)
}

func fillDouble(c drivertest.Call) {
	shift, n, v := word(c.Buffers[0], 0), word(c.Buffers[0], 1), word(c.Buffers[0], 2)
	for i := range n {
		setWord(c.Buffers[1], int(shift+i), v)
	}
}

func copyDouble(c drivertest.Call) {
	w, status := c.Buffers[0], c.Buffers[3]
	for i := range word(w, 2) {
		x := word(c.Buffers[1], int(word(w, 0)+i))
		setWord(c.Buffers[2], int(word(w, 1)+i), x)
		if x > word(w, 3) {
			setWord(status, 0, word(status, 0)|statusIndex)
		}
	}
}

// dense is a Copy of n elements.
func dense(from, to pass.View, n int) pass.Op {
	return pass.Copy{From: from, To: to, Rows: 1, Cols: n}
}

// fillWith is a Fill of n elements.
func fillWith(to pass.View, n int, word uint32) pass.Op {
	return pass.Fill{To: to, Rows: 1, Cols: n, Word: word}
}
