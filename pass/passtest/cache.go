package passtest

import (
	"testing"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// caches are those of a case on a device, with the recordings that fill them and that
// read them back.
type caches struct {
	handles      map[string]pass.Cache
	fills        pass.Recording
	fillBinds    []pass.Bind
	probes       pass.Recording // nil if nothing is written
	probeBinds   []pass.Bind
	probeOutputs map[string]pass.Output
}

// newCaches makes the caches of a case.
func newCaches(t testing.TB, ses pass.Session, p *cases.Placed) *caches {
	t.Helper()
	h := &caches{handles: emptyCaches(t, ses, p.Case), probeOutputs: map[string]pass.Output{}}
	if len(h.handles) == 0 {
		return h
	}
	var err error
	h.fills, err = ses.Record(background, pass.RecordOptions{Label: "fill"}, func(r pass.Pass) {
		for _, c := range p.Case.Caches {
			g := h.handles[c.Field].Config()
			k, v := r.Input(pass.F32, len(c.K)), r.Input(pass.F32, len(c.V))
			h.fillBinds = append(h.fillBinds, k.F32(c.K), v.F32(c.V))
			r.Do(pass.Append{K: k.View(), V: v.View(), Cache: h.handles[c.Field], Batch: g.Batch, Rows: g.Capacity})
		}
	})
	ok(t, err, "record the fill of caches")
	if len(written(p.Checked)) == 0 {
		return h
	}
	h.probes, err = ses.Record(background, pass.RecordOptions{Label: "probe"}, func(r pass.Pass) {
		for _, c := range p.Case.Caches {
			op, q := c.Probe()
			in, out := r.Input(pass.F32, len(q)), r.Temp(pass.F32, len(q))
			op.Q, op.O, op.Cache = in.View(), out.View(), h.handles[c.Field]
			r.Do(op)
			h.probeBinds = append(h.probeBinds, in.F32(q))
			h.probeOutputs[c.Field] = r.Output(out.View(), len(q))
		}
	})
	ok(t, err, "record the probe of caches")
	return h
}

// emptyCaches makes the caches of a case without what they hold.
func emptyCaches(t testing.TB, ses pass.Session, c cases.Case) map[string]pass.Cache {
	t.Helper()
	all := map[string]pass.Cache{}
	for _, h := range c.Caches {
		var err error
		all[h.Field], err = ses.NewCache(h.Config)
		ok(t, err, "new cache "+h.Field)
	}
	return all
}

// written returns the names of the caches that an op writes to.
func written(op pass.Checked) []string {
	var names []string
	for _, h := range op.Caches {
		if h.Access&pass.Write != 0 {
			names = append(names, h.Name)
		}
	}
	return names
}

// fill puts into the caches what they hold before the op.
func (h *caches) fill(t testing.TB) {
	t.Helper()
	if h.fills != nil {
		run, err := h.fills.Run(background, h.fillBinds...)
		ok(t, err, "fill caches")
		run.Close()
	}
}

// probe adds to after what queries find in the caches that are written.
func (h *caches) probe(t testing.TB, after words) {
	t.Helper()
	if h.probes == nil {
		return
	}
	run, err := h.probes.Run(background, h.probeBinds...)
	ok(t, err, "probe caches")
	for name, o := range h.probeOutputs {
		after[name] = readOutput(t, run, o)
	}
	run.Close()
}

func (h *caches) free(t testing.TB, ses pass.Session) {
	t.Helper()
	for _, rec := range []pass.Recording{h.fills, h.probes} {
		if rec != nil {
			ok(t, rec.Close(), "close the recording of caches")
		}
	}
	for name, c := range h.handles {
		ok(t, ses.FreeCache(c), "free cache "+name)
	}
}
