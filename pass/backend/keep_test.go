package backend

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// keepable is a program of the fake that can be kept.
type keepable struct {
	*fakeProgram
	spent bool // of no more use
	moved bool // what it was made for is gone
	freed bool
}

func (p *keepable) Rest() (int, bool) { return len(p.pieces), !p.spent }

func (p *keepable) Resume(plan *Plan) bool {
	p.p = plan
	return !p.moved
}

func (p *keepable) Free() {
	if p.freed {
		panic("freed twice")
	}
	p.freed = true
	p.fakeProgram.Free()
}

func keeping(t *testing.T) (*fake, pass.Device, pass.Session) {
	f := newFake()
	f.keeps = true
	d, s := open(t, f, pass.SessionConfig{})
	return f, d, s
}

// made records copies, reports how many programs that took, and checks what they do.
func made(t *testing.T, f *fake, s pass.Session, n int, opt pass.RecordOptions) (pass.Recording, int) {
	t.Helper()
	before := f.compiled.Load()
	rec, in, out := chain(t, s, n, opt)
	run, err := rec.Run(t.Context(), in.U32([]uint32{uint32(100 + n)}))
	require.NoError(t, err)
	got := make([]uint32, 1)
	require.NoError(t, run.ReadU32(out, got))
	require.EqualValues(t, 100+n, got[0])
	run.Close()
	return rec, int(f.compiled.Load() - before)
}

// The program of a recording that is closed serves the next that is the same, once at a
// time, in its own session, and under the label of the new one.
func TestKept(t *testing.T) {
	t.Parallel()
	f, d, s := keeping(t)
	usual := pass.RecordOptions{}
	record := func(s pass.Session, n int, opt pass.RecordOptions, want int) pass.Recording {
		t.Helper()
		rec, programs := made(t, f, s, n, opt)
		require.Equal(t, want, programs)
		return rec
	}
	first := record(s, 3, usual, 1)
	record(s, 3, usual, 1) // the first is open
	require.NoError(t, first.Close())
	record(s, 4, usual, 1)
	record(s, 3, pass.RecordOptions{Math: pass.Fast}, 1)
	other, err := d.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	record(other, 3, usual, 1)
	again := record(s, 3, pass.RecordOptions{Label: "again"}, 0)
	var dump strings.Builder
	require.NoError(t, again.Dump(&dump))
	require.Contains(t, dump.String(), `recording "again"`)
	require.NoError(t, again.Close())
	require.NoError(t, again.Close())
	record(s, 3, usual, 0)
	record(s, 3, usual, 1)
}

// What is of no more use, or was made for what is gone, serves nobody.
func TestNotKept(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*keepable){
		"spent": func(p *keepable) { p.spent = true },
		"moved": func(p *keepable) { p.moved = true },
	} {
		f, _, s := keeping(t)
		rec, _ := made(t, f, s, 3, pass.RecordOptions{})
		spoil(rec.(*recording).program.(*keepable))
		require.NoError(t, rec.Close())
		_, programs := made(t, f, s, 3, pass.RecordOptions{})
		require.Equal(t, 1, programs, name)
		require.EqualValues(t, 1, f.programs.Load(), name)
	}
}

// Programs are kept so far: the latest stay, and one that is too large drives nobody out.
func TestKeptLimits(t *testing.T) {
	t.Parallel()
	f, _, s := keeping(t)
	closed := func(n int) int {
		rec, programs := made(t, f, s, n, pass.RecordOptions{})
		require.NoError(t, rec.Close())
		return programs
	}
	for n := 1; n <= KeptPrograms+1; n++ {
		closed(n)
	}
	require.EqualValues(t, KeptPrograms, f.programs.Load())
	closed(KeptKernels + 1)
	require.EqualValues(t, KeptPrograms, f.programs.Load())
	require.Zero(t, closed(2))
	require.Equal(t, 1, closed(1), "was the oldest") // and drives 3 out
	require.Zero(t, closed(2))
	require.Equal(t, 1, closed(KeptKernels-1)) // room for one kernel beside it, and 2 has two
	require.EqualValues(t, 1, f.programs.Load())
	require.Equal(t, 1, closed(1))
	require.EqualValues(t, 2, f.programs.Load())
}

// Where memory is short, what any session keeps is given up, and what failed is tried once
// more.
func TestKeptWhereMemoryIsShort(t *testing.T) {
	t.Parallel()
	f, d, s := keeping(t)
	other, err := d.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	for name, call := range map[string]func() error{
		"alloc": func() error { _, err := s.Alloc(pass.F32, 4); return err },
		"cache": func() error {
			_, err := s.NewCache(pass.CacheConfig{Type: pass.F32, Batch: 1, Heads: 1, HeadDim: 4, Capacity: 4})
			return err
		},
		"load": func() error {
			_, err := d.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", []float32{1}, 1, 1)}})
			return err
		},
		"record": func() error {
			rec, err := s.Record(t.Context(), pass.RecordOptions{}, func(pass.Pass) {})
			if err != nil {
				return err
			}
			return rec.Close()
		},
	} {
		f.short = nil
		kept, _ := made(t, f, other, 3, pass.RecordOptions{})
		require.NoError(t, kept.Close())
		with := f.programs.Load()
		f.short = func() bool { return f.programs.Load() == with }
		require.NoError(t, call(), name)
		require.True(t, s.(*session).kept.forget() == (name == "record"), name)
		f.short = func() bool { return true }
		require.ErrorIs(t, call(), pass.ErrOutOfMemory, name)
	}
}

// A session that is closed keeps nothing, not even what a run under way has held back.
func TestNothingIsKeptByAClosedSession(t *testing.T) {
	t.Parallel()
	f, _, s := keeping(t)
	kept, _ := made(t, f, s, 3, pass.RecordOptions{})
	require.NoError(t, kept.Close())
	f.gate = make(chan struct{}, 1)
	rec, in, _ := chain(t, s, 1, pass.RecordOptions{})
	_, err := rec.Start(t.Context(), in.U32([]uint32{1}))
	require.NoError(t, err)
	require.NoError(t, rec.Close())
	f.gate <- struct{}{}
	require.NoError(t, s.Close())
	require.Zero(t, f.programs.Load())
}

// A recording that is the same is not made for a context that has ended meanwhile.
func TestKeptAndCancelled(t *testing.T) {
	t.Parallel()
	f, _, s := keeping(t)
	empty, err := s.Record(t.Context(), pass.RecordOptions{}, func(pass.Pass) {})
	require.NoError(t, err)
	require.NoError(t, empty.Close())
	ctx, cancel := context.WithCancel(t.Context())
	before := f.compiled.Load()
	rec, err := s.Record(ctx, pass.RecordOptions{}, func(pass.Pass) { cancel() })
	require.NoError(t, err) // the fake looks at no context
	require.Equal(t, before+1, f.compiled.Load(), "which the backend has to see")
	require.NoError(t, rec.Close())
}
