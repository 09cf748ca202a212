package cuda

import (
	"context"
	"log/slog"
	"time"
)

// phases are where the time goes that making a program takes, for the log.
type phases struct {
	since time.Time
	took  []slog.Attr
}

func newPhases() *phases { return &phases{since: time.Now()} }

// end ends a phase; it may have several parts.
func (p *phases) end(name string) {
	now := time.Now()
	part := now.Sub(p.since)
	p.since = now
	for i, a := range p.took {
		if a.Key == name {
			p.took[i].Value = slog.DurationValue(a.Value.Duration() + part)
			return
		}
	}
	p.took = append(p.took, slog.Duration(name, part))
}

// log says what was made, and what it took.
func (p *phases) log(to *slog.Logger, what, label string, kernels int) {
	if ctx := context.Background(); to.Enabled(ctx, slog.LevelDebug) {
		to.LogAttrs(ctx, slog.LevelDebug, what, append(p.took, slog.String("label", label), slog.Int("kernels", kernels))...)
	}
}
