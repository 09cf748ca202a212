package guard

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// A shelf is a library whose objects are texts. It notes what it makes and frees, and
// fails when it is told to.
type shelf struct {
	lock    *sync.Mutex
	calls   []string
	failure error // of what is made
	closed  error
}

func (s *shelf) make(kind string) (string, error) {
	if s.failure != nil {
		return "", s.failure
	}
	s.note("make " + kind)
	return kind, nil
}

func (s *shelf) note(call string) {
	if s.lock.TryLock() {
		s.lock.Unlock()
		call += " without the lock"
	}
	s.calls = append(s.calls, call)
}

func (s *shelf) Usable(what string) error {
	if s.closed != nil {
		return fmt.Errorf("%s: %w", what, s.closed)
	}
	return nil
}

func (s *shelf) MakeBuffer(driver.BufferDesc) (string, error)     { return s.make("buffer") }
func (s *shelf) MakePipeline(driver.PipelineDesc) (string, error) { return s.make("pipeline") }
func (s *shelf) MakeGroup(p *Pipeline[string], _ []driver.Binding, b []*Buffer[string]) (string, error) {
	return s.make("group of " + p.Native + " and " + b[0].Native)
}
func (s *shelf) MakeQueries(uint32) (string, error) { return s.make("queries") }
func (s *shelf) FreeBuffer(o string)                { s.note("free " + o) }
func (s *shelf) FreePipeline(o string)              { s.note("free " + o) }
func (s *shelf) FreeGroup(o string)                 { s.note("free " + o) }
func (s *shelf) FreeQueries(o string)               { s.note("free " + o) }

const grouped = "group of pipeline and buffer"

// fixture is the methods of a device with one object of each kind.
type fixture struct {
	Objects[string, string, string, string]
	*shelf
	desc     driver.BufferDesc
	kernel   driver.PipelineDesc
	bindings []driver.Binding
	buffer   driver.BufferID
	pipeline driver.PipelineID
	group    driver.BindGroupID
	queries  driver.QueryID
}

func newFixture(t *testing.T) *fixture {
	var mu sync.Mutex
	limits := driver.Limits{MaxBufferSize: 1 << 20, MaxStorageBindingSize: 4096, MaxStorageBuffers: 8, MaxBindings: 16}
	s := &shelf{lock: &mu}
	f := &fixture{
		Objects: NewObjects(&mu, New[string, string, string, string](limits, driver.FeatureTimestamps, 0), s), shelf: s,
		desc:   driver.BufferDesc{Size: 256, Usage: driver.Storage},
		kernel: driver.PipelineDesc{Source: "fn main() {}", Entry: "main", Bindings: []driver.BindingKind{driver.StorageRead}},
	}
	require.Equal(t, limits, f.Limits())
	require.Equal(t, driver.FeatureTimestamps, f.Features())
	var err error
	f.buffer, err = f.CreateBuffer(f.desc)
	require.NoError(t, err)
	f.pipeline, err = f.CreatePipeline(f.kernel)
	require.NoError(t, err)
	f.bindings = []driver.Binding{{Buffer: f.buffer, Size: 256}}
	f.group, err = f.CreateBindGroup(f.pipeline, f.bindings)
	require.NoError(t, err)
	f.queries, err = f.CreateQueries(2)
	require.NoError(t, err)
	require.Equal(t, []string{"make buffer", "make pipeline", "make " + grouped, "make queries"}, s.calls)
	s.calls = nil
	return f
}

// creations are the calls that make one more of each kind.
func (f *fixture) creations() map[string]func() error {
	return map[string]func() error{
		"buffer":   func() error { _, err := f.CreateBuffer(f.desc); return err },
		"pipeline": func() error { _, err := f.CreatePipeline(f.kernel); return err },
		grouped:    func() error { _, err := f.CreateBindGroup(f.pipeline, f.bindings); return err },
		"queries":  func() error { _, err := f.CreateQueries(2); return err },
	}
}

func (f *fixture) destructions() map[string]func() error {
	return map[string]func() error{
		"buffer":   func() error { return f.DestroyBuffer(f.buffer) },
		"pipeline": func() error { return f.DestroyPipeline(f.pipeline) },
		grouped:    func() error { return f.DestroyBindGroup(f.group) },
		"queries":  func() error { return f.DestroyQueries(f.queries) },
	}
}

var oneOfEach = driver.Ledger{Buffers: 1, Bytes: 256, Pipelines: 1, BindGroups: 1, Queries: 1}

func TestObjectsAreFreedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for kind, destroy := range f.destructions() {
		f.calls = nil
		require.NoError(t, destroy())
		require.ErrorIs(t, destroy(), pass.ErrInvalid, kind)
		require.Equal(t, []string{"free " + kind}, f.calls)
	}
	require.Zero(t, f.book.Ledger())
}

func TestObjectsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.failure = errors.New("the shelf is full")
	for kind, create := range f.creations() {
		require.ErrorIs(t, create(), f.failure, kind)
	}
	f.failure = nil
	require.Empty(t, f.calls)
	f.desc.Size, f.kernel.Entry, f.bindings[0].Size = 3, "", 0
	for kind, create := range f.creations() {
		if kind != "queries" {
			require.ErrorIs(t, create(), pass.ErrInvalid, kind)
		}
	}
	_, err := f.CreateQueries(0)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.Empty(t, f.calls, "the library heard of it")
	require.Equal(t, oneOfEach, f.book.Ledger())
}

// What the books have no name left for is freed again.
func TestObjectsThatCannotBeEntered(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.book
	b.buffers.most, b.pipelines.most, b.groups.most, b.queries.most = 1, 1, 1, 1
	for kind, create := range f.creations() {
		f.calls = nil
		require.ErrorIs(t, create(), pass.ErrOutOfMemory, kind)
		require.Equal(t, []string{"make " + kind, "free " + kind}, f.calls)
	}
	require.Equal(t, oneOfEach, b.Ledger())
}

func TestObjectsOfAClosedDevice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.closed = pass.ErrClosed
	for kind, create := range f.creations() {
		require.ErrorIs(t, create(), pass.ErrClosed, kind)
	}
	for kind, destroy := range f.destructions() {
		require.ErrorIs(t, destroy(), pass.ErrClosed, kind)
	}
	require.Empty(t, f.calls)
}

func TestAllObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Objects.lock.Lock()
	f.FreeAll()
	f.Objects.lock.Unlock()
	require.Equal(t, []string{"free " + grouped, "free pipeline", "free queries", "free buffer"}, f.calls)
	require.Zero(t, f.book.Ledger())
	f = newFixture(t)
	f.Objects.lock.Lock()
	f.Abandon()
	f.Objects.lock.Unlock()
	require.Empty(t, f.calls)
	require.Zero(t, f.book.Ledger())
	require.ErrorIs(t, f.DestroyBuffer(f.buffer), pass.ErrInvalid)
}
