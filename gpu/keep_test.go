package gpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// counted counts the plans that a rig compiles.
func counted(r *rig) *int {
	n := new(int)
	r.hw.compile = func(c *compiler) error {
		*n++
		return rigCompile(c)
	}
	return n
}

// A keptChain is a session in which chains of copies are recorded.
type keptChain struct {
	*rig
	s        pass.Session
	compiled *int
}

func newKeptChain(t *testing.T, r *rig) *keptChain {
	s, err := r.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	return &keptChain{r, s, counted(r)}
}

// record records copies of n words, runs them if that is wanted, and returns how many plans
// that compiled.
func (k *keptChain) record(t *testing.T, n, copies int, run bool) (pass.Recording, int) {
	t.Helper()
	before := *k.compiled
	var in pass.Input
	var out pass.Output
	rec, err := k.s.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.U32, n)
		from := in.Buffer
		for range copies {
			to := p.Temp(pass.U32, n)
			p.Do(dense(from.View(), to.View(), n))
			from = to
		}
		out = p.Output(from.View(), n)
	})
	require.NoError(t, err)
	if run {
		want, got := sequence(n, uint32(n)), make([]uint32, n)
		run, err := rec.Run(t.Context(), in.U32(want))
		require.NoError(t, err)
		require.NoError(t, run.ReadU32(out, got))
		require.NoError(t, equal(want, got))
		run.Close()
	}
	return rec, *k.compiled - before
}

// A recording that was made before and closed is neither compiled nor bound, one that is
// open serves nobody else, and so does one that is not quite the same.
func TestRecordedAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		k := newKeptChain(t, r)
		record := func(n, copies, want int) pass.Recording {
			t.Helper()
			rec, compiled := k.record(t, n, copies, true)
			require.Equal(t, want, compiled)
			return rec
		}
		first := record(64, 4, 1)
		record(64, 4, 1) // the first is open
		require.NoError(t, first.Close())
		before := r.hw.drv.Ledger()
		again := record(64, 4, 0)
		after := r.hw.drv.Ledger()
		before.InFlight, after.InFlight = 0, 0
		require.Equal(t, before, after)
		record(64, 4, 1) // all are open
		require.NoError(t, again.Close())
		record(65, 4, 1)
		record(64, 5, 1)
		record(64, 4, 0)
	})
}

// A workspace that has grown meanwhile is bound.
func TestRecordedAgainInALargerWorkspace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		k := newKeptChain(t, r)
		for _, n := range []int{64, 6400, 64, 12800, 6400, 64} {
			rec, _ := k.record(t, n, 3, true)
			require.NoError(t, rec.Close())
		}
		require.Equal(t, 3, *k.compiled)
	})
}

// Programs are kept only so far, with the buffers of one run each if they are small.
func TestKeptPrograms(t *testing.T) {
	t.Parallel()
	r := memoryRig(t, drivertest.Config{}, options{}, nil)
	k := newKeptChain(t, r)
	rec, _ := k.record(t, keptWords+1, 2, true)
	require.NoError(t, rec.Close())
	for n := range 2 * backend.KeptPrograms {
		rec, _ := k.record(t, 1+n, 2, true)
		require.NoError(t, rec.Close())
	}
	first := r.fake.Ledger()
	for n := range 2 * backend.KeptPrograms {
		rec, _ := k.record(t, 100+n, 2, true)
		require.NoError(t, rec.Close())
	}
	require.Equal(t, 1+4*backend.KeptPrograms, *k.compiled)
	last := r.fake.Ledger()
	last.Bytes, first.Bytes = 0, 0
	require.Equal(t, first, last)

	with := r.fake.Ledger().Bytes
	large, _ := k.record(t, keptWords+1, 2, false)
	require.NoError(t, large.Close())
	require.Less(t, r.fake.Ledger().Bytes, with+4*keptWords, "inputs and outputs of that size are not kept")
	large, compiled := k.record(t, keptWords+1, 2, true)
	require.Zero(t, compiled)
	require.NoError(t, large.Close())
}

// What is kept gives way where memory is short.
func TestKeptProgramsWhereMemoryIsShort(t *testing.T) {
	t.Parallel()
	const budget = 4*slotWords + 1<<20
	r := memoryRig(t, drivertest.Config{MemoryBudget: budget}, options{}, nil)
	k := newKeptChain(t, r)
	rec, _ := k.record(t, 10_000, 2, true)
	require.NoError(t, rec.Close())
	kept := r.fake.Ledger().Bytes
	b, err := k.s.Alloc(pass.U32, (budget-int(kept))/4+1000)
	require.NoError(t, err, "with the memory of what was kept")
	require.NoError(t, k.s.Free(b))
	rec, compiled := k.record(t, 10_000, 2, true)
	require.Equal(t, 1, compiled)
	require.NoError(t, rec.Close())
	_, err = k.s.Alloc(pass.U32, budget/4)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
}

// A program of which a part has failed, or whose device is lost, serves nobody else.
func TestNotRecordedAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		k := newKeptChain(t, r)
		var in pass.Input
		record := func(want int) pass.Recording {
			before := *k.compiled
			rec, err := k.s.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
				in = p.Input(pass.U32, 1)
				p.Do(dense(in.View(), p.Temp(pass.U32, 1).View(), 1))
			})
			require.NoError(t, err)
			require.Equal(t, want, *k.compiled-before)
			return rec
		}
		rec := record(1)
		_, err := rec.Run(t.Context(), in.U32([]uint32{rigLimit + 1}))
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.NoError(t, rec.Close())
		rec = record(1)
		_, err = rec.Run(t.Context(), in.U32([]uint32{rigLimit}))
		require.NoError(t, err)
		require.NoError(t, rec.Close())
		require.NoError(t, record(0).Close())
	})
	r := memoryRig(t, drivertest.Config{}, options{}, nil)
	k := newKeptChain(t, r)
	rec, _ := k.record(t, 4, 2, true)
	require.NoError(t, rec.Close())
	r.fake.Lose()
	before := *k.compiled
	_, err := k.s.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		from, x, y := p.Input(pass.U32, 4), p.Temp(pass.U32, 4), p.Temp(pass.U32, 4)
		p.Do(dense(from.View(), x.View(), 4), dense(x.View(), y.View(), 4))
		p.Output(y.View(), 4)
	})
	require.ErrorIs(t, err, pass.ErrDeviceLost)
	require.Equal(t, before+1, *k.compiled, "as if it were new")
	require.NoError(t, r.Close())
	r.left = driver.Ledger{} // nothing can be freed on a lost device
}

func mustAlloc(t *testing.T, s pass.Session, n int) pass.Buffer {
	t.Helper()
	b, err := s.Alloc(pass.U32, n)
	require.NoError(t, err)
	return b
}

// Buffers of the session are numbered as a recording names them, also by ops that do
// nothing: the same ops may mean other numbers.
func TestRecordedAgainWithOtherNumbers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		k := newKeptChain(t, r)
		a, b := mustAlloc(t, k.s, 8), mustAlloc(t, k.s, 8)
		for i, first := range []pass.Buffer{a, b, a} {
			rec, err := k.s.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
				p.Do(fillWith(first.View(), 0, 0), fillWith(a.View(), 8, 10), fillWith(b.View(), 8, 20))
			})
			require.NoError(t, err)
			_, _ = k.record(t, 100*(1+i), 3, true) // what is bound is bound anew
			run, err := rec.Run(t.Context())
			require.NoError(t, err)
			run.Close()
			require.NoError(t, rec.Close())
			got := make([]uint32, 8)
			require.NoError(t, k.s.Read(t.Context(), a.View(), got))
			require.EqualValues(t, 10, got[7])
			require.NoError(t, k.s.Read(t.Context(), b.View(), got))
			require.EqualValues(t, 20, got[7])
		}
	})
}

// Recordings that come and go at random, of state that comes and goes, do what they do on
// the CPU.
func TestRecordedAtRandom(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		host, err := cpu.Open(cpu.Config{})
		require.NoError(t, err)
		defer host.Close()
		compiled := counted(r)
		for seed := range uint64(4) {
			want := newComings(t, host, seed)
			got := newComings(t, r, seed)
			for step := range 250 {
				w, g := want.step(t), got.step(t)
				require.NoError(t, equal(w, g), "seed %d, step %d: %s", seed, step, got.what)
			}
			require.Less(t, *compiled, got.recorded, "some were kept")
			require.NoError(t, want.s.Close())
			require.NoError(t, got.s.Close())
			*compiled = 0
		}
	})
}

// comings are recordings that come and go.
type comings struct {
	random   *rand.Rand
	s        pass.Session
	states   [3]pass.Buffer
	open     []*coming
	recorded int
	what     string
}

type coming struct {
	rec pass.Recording
	in  pass.Input
	out [2]pass.Output
	n   int
}

func newComings(t *testing.T, dev pass.Device, seed uint64) *comings {
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	c := &comings{random: rand.New(rand.NewPCG(seed, 3)), s: s}
	for i := range c.states {
		c.states[i] = mustAlloc(t, s, comingState)
	}
	return c
}

const comingState = 40

// step does one thing, and returns what there is to see.
func (c *comings) step(t *testing.T) []uint32 {
	ctx := context.Background()
	switch k := c.random.IntN(20); {
	case k < 6:
		c.what = "record"
		c.record(t)
	case k < 12 && len(c.open) > 0:
		c.what = "close"
		i := c.random.IntN(len(c.open))
		require.NoError(t, c.open[i].rec.Close())
		c.open = append(c.open[:i], c.open[i+1:]...)
	case k == 12:
		i := c.random.IntN(len(c.states))
		c.what = fmt.Sprintf("replace state %d", i)
		require.NoError(t, c.s.Free(c.states[i]))
		c.states[i] = mustAlloc(t, c.s, comingState)
	case k == 13:
		i := c.random.IntN(len(c.states))
		c.what = fmt.Sprintf("read state %d", i)
		got := make([]uint32, comingState)
		require.NoError(t, c.s.Read(ctx, c.states[i].View(), got))
		return got
	case len(c.open) > 0:
		c.what = "run"
		o := c.open[c.random.IntN(len(c.open))]
		run, err := o.rec.Run(ctx, o.in.U32(sequence(o.n, c.random.Uint32N(1000))))
		require.NoError(t, err)
		got := make([]uint32, o.n+comingState)
		require.NoError(t, run.ReadU32(o.out[0], got[:o.n]))
		require.NoError(t, run.ReadU32(o.out[1], got[o.n:]))
		run.Close()
		return got
	}
	return nil
}

// record makes one of a few recordings; now and then one that needs more memory than all
// before.
func (c *comings) record(t *testing.T) {
	kind, first, n := c.random.IntN(2), c.random.IntN(2), 20+c.random.IntN(2)
	if c.random.IntN(10) == 0 {
		n += 100 * (1 + c.recorded)
	}
	c.recorded++
	from, to := c.states[kind], c.states[kind+1]
	o := &coming{n: n}
	var err error
	o.rec, err = c.s.Record(context.Background(), pass.RecordOptions{}, func(p pass.Pass) {
		o.in = p.Input(pass.U32, n)
		x, y := p.Temp(pass.U32, n), p.Temp(pass.U32, n)
		p.Do(fillWith(c.states[first].View(), 0, 0)) // names a state, and does nothing
		p.Do(dense(o.in.View(), x.View(), n), dense(x.View(), y.View(), n), dense(y.View(), to.At(kind), 20))
		p.Do(fillWith(x.View(), n, 7), dense(from.At(1), x.At(2), 10), dense(x.View(), to.At(20), 12))
		o.out[0], o.out[1] = p.Output(x.View(), n), p.Output(to.View(), comingState)
	})
	require.NoError(t, err)
	c.open = append(c.open, o)
}
