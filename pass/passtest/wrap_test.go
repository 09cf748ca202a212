package passtest

import (
	"context"
	"errors"
	"io"

	"github.com/tandem-gpu/tandem/pass"
)

// wrapped is a device that keeps the contract but for one fault in what lies above the
// hardware.
type wrapped struct {
	pass.Device
	fault  string
	closed bool
}

func newWrapped(fault string) pass.Device { return &wrapped{Device: newToy(""), fault: fault} }

// spoilError makes an error less than it should be.
func spoilError(fault string, err error) error {
	if err == nil {
		return nil
	}
	switch fault {
	case "errors without names":
		for _, s := range []error{pass.ErrInvalid, pass.ErrClosed, context.Canceled, context.DeadlineExceeded} {
			if errors.Is(err, s) {
				return s
			}
		}
	case "errors without sentinels":
		return errors.New(err.Error())
	case "errors lost":
		return nil
	}
	return err
}

// context ends only if the fault lets it.
func faultyContext(ctx context.Context, fault string) context.Context {
	if fault == "contexts ignored" {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (w *wrapped) Load(ctx context.Context, weights pass.Weights) (pass.Param, error) {
	p, err := w.Device.Load(faultyContext(ctx, w.fault), weights)
	return p, spoilError(w.fault, err)
}

func (w *wrapped) NewSession(cfg pass.SessionConfig) (pass.Session, error) {
	s, err := w.Device.NewSession(cfg)
	if err != nil {
		return nil, spoilError(w.fault, err)
	}
	return &wrappedSession{Session: s, fault: w.fault}, nil
}

func (w *wrapped) Close() error {
	if w.closed && w.fault == "second close fails" {
		return pass.ErrClosed
	}
	w.closed = true
	return w.Device.Close()
}

type wrappedSession struct {
	pass.Session
	fault string
}

func (s *wrappedSession) Alloc(t pass.DType, n int) (pass.Buffer, error) {
	if s.fault == "nothing is refused" && n == 0 {
		return pass.Buffer{}, pass.ErrInvalid
	}
	b, err := s.Session.Alloc(t, n)
	return b, spoilError(s.fault, err)
}

func (s *wrappedSession) NewCache(cfg pass.CacheConfig) (pass.Cache, error) {
	h, err := s.Session.NewCache(cfg)
	return h, spoilError(s.fault, err)
}

func (s *wrappedSession) FreeCache(h pass.Cache) error {
	return spoilError(s.fault, s.Session.FreeCache(h))
}

func (s *wrappedSession) Free(b pass.Buffer) error {
	if s.fault == "free spoils what is in use" {
		_ = s.Session.Write(background, b.View(), make([]float32, b.Len()))
	}
	return spoilError(s.fault, s.Session.Free(b))
}

func (s *wrappedSession) Write(ctx context.Context, v pass.View, data any) error {
	return spoilError(s.fault, s.Session.Write(faultyContext(ctx, s.fault), v, data))
}

func (s *wrappedSession) Read(ctx context.Context, v pass.View, data any) error {
	return spoilError(s.fault, s.Session.Read(faultyContext(ctx, s.fault), v, data))
}

func (s *wrappedSession) Record(ctx context.Context, opt pass.RecordOptions, f func(pass.Pass)) (pass.Recording, error) {
	if report := opt.Progress; report != nil && s.fault == "progress stops short" {
		opt.Progress = func(done float64) { report(done / 2) }
	}
	r, err := s.Session.Record(faultyContext(ctx, s.fault), opt, f)
	if err != nil {
		if err = spoilError(s.fault, err); err == nil {
			return &wrappedRecording{fault: s.fault}, nil
		}
		return nil, err
	}
	return &wrappedRecording{Recording: r, fault: s.fault}, nil
}

type wrappedRecording struct {
	pass.Recording
	fault string
	first pass.Run
	runs  int
}

func (r *wrappedRecording) Close() error {
	if r.Recording == nil {
		return nil
	}
	return r.Recording.Close()
}

func (r *wrappedRecording) Dump(w io.Writer) error {
	if r.fault == "dump is empty" {
		return nil
	}
	return r.Recording.Dump(w)
}

func (r *wrappedRecording) Start(ctx context.Context, binds ...pass.Bind) (pass.Run, error) {
	if r.fault == "first bind wins" && len(binds) > 1 {
		binds = binds[:1]
	}
	run, err := r.Recording.Start(faultyContext(ctx, r.fault), binds...)
	if err != nil {
		return run, spoilError(r.fault, err)
	}
	if r.runs++; r.runs == 1 {
		r.first = run
	}
	return pass.MakeRun(&wrappedRun{r, run}, 1), nil
}

func (r *wrappedRecording) Run(ctx context.Context, binds ...pass.Bind) (pass.Run, error) {
	run, err := r.Start(ctx, binds...)
	if err == nil {
		err = run.Wait(background)
	}
	return run, err
}

type wrappedRun struct {
	r   *wrappedRecording
	run pass.Run
}

func (w *wrappedRun) Wait(ctx context.Context, _ uint64) error {
	err := w.run.Wait(ctx)
	if w.r.fault == "waiting once only" && err != nil {
		w.run = pass.Run{}
	}
	return spoilError(w.r.fault, err)
}

func (w *wrappedRun) Read(o pass.Output, f32 []float32, u32 []uint32, _ uint64) error {
	run := w.run
	if f32 != nil && w.r.fault == "length of output ignored" && len(f32) < o.Len() {
		return nil
	}
	read := func() error {
		if u32 != nil {
			return run.ReadU32(o, u32)
		}
		return run.ReadF32(o, f32)
	}
	err := read()
	if err != nil && w.r.fault == "first data when cancelled" {
		run = w.r.first
		err = read()
	}
	return err
}

func (w *wrappedRun) Close(uint64) {
	if w.r.fault != "closed runs stay" {
		w.run.Close()
	}
}
