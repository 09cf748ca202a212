package guard

import (
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// Book is the state of one device. The type parameters are what the provider's library
// calls a buffer, a pipeline, a bind group and a query set.
type Book[B, P, G, Q any] struct {
	limits   driver.Limits
	features driver.Feature
	budget   uint64
	bytes    uint64

	buffers   table[Buffer[B]]
	pipelines table[Pipeline[P]]
	groups    table[Group[B, G]]
	queries   table[QuerySet[Q]]
	layouts   map[string]int
	counts    struct{ buffers, pipelines, groups, queries int }
}

// Buffer is a live or a destroyed buffer.
type Buffer[B any] struct {
	Native B
	Label  string
	Size   uint64
	Usage  driver.BufferUsage
	Mapped bool // being read or written by the host: the device must not touch it

	id        driver.BufferID
	destroyed bool
}

// Pipeline is a live pipeline. Layout is equal for equal Bindings.
type Pipeline[P any] struct {
	Native   P
	Label    string
	Bindings []driver.BindingKind
	Dynamic  int
	Layout   int
}

// Group is a live bind group.
type Group[B, G any] struct {
	Native   G
	Bindings []driver.Binding
	// Buffers are the bindings' buffers. One of them may be destroyed by now, but not
	// in a group that Dispatch returned.
	Buffers []*Buffer[B]

	kinds  []driver.BindingKind
	layout int
}

// QuerySet is a live query set.
type QuerySet[Q any] struct {
	Native Q
	Count  uint32
}

// New opens the books of a device with these limits and features. budget bounds the
// bytes in buffers; zero is no bound.
func New[B, P, G, Q any](limits driver.Limits, features driver.Feature, budget uint64) *Book[B, P, G, Q] {
	tag := nextTag()
	return &Book[B, P, G, Q]{
		limits: limits, features: features, budget: budget,
		buffers:   newTable[Buffer[B]]("buffer", tag),
		pipelines: newTable[Pipeline[P]]("pipeline", tag),
		groups:    newTable[Group[B, G]]("bind group", tag),
		queries:   newTable[QuerySet[Q]]("query set", tag),
		layouts:   map[string]int{},
	}
}

// Ledger counts the live objects; the device adds what is in flight.
func (b *Book[B, P, G, Q]) Ledger() driver.Ledger {
	return driver.Ledger{
		Buffers: b.counts.buffers, Bytes: b.bytes, Pipelines: b.counts.pipelines,
		BindGroups: b.counts.groups, Queries: b.counts.queries,
	}
}

// drain calls the functions for every live object, bind groups first and buffers last,
// and empties the books.
func (b *Book[B, P, G, Q]) drain(group func(G), pipeline func(P), query func(Q), buffer func(B)) {
	b.groups.each(func(g *Group[B, G]) { group(g.Native) })
	b.pipelines.each(func(p *Pipeline[P]) { pipeline(p.Native) })
	b.queries.each(func(q *QuerySet[Q]) { query(q.Native) })
	b.buffers.each(func(o *Buffer[B]) {
		o.destroyed = true
		buffer(o.Native)
	})
	b.groups.clear()
	b.pipelines.clear()
	b.queries.clear()
	b.buffers.clear()
	b.bytes = 0
	b.counts = struct{ buffers, pipelines, groups, queries int }{}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, pass.ErrInvalid)...)
}

// checkText refuses what a C string cannot carry.
func checkText(what, text string) error {
	if strings.IndexByte(text, 0) >= 0 {
		return invalid("%s has a zero byte", what)
	}
	return nil
}
