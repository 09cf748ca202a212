package cuda

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// stretchBytes bounds the scratch memory for gates; one step may take more. Tests lower it.
var stretchBytes = 64 << 20

// fewSteps is up to how many steps each has a launch: reading all recurrent weights into
// one multiprocessor takes as long as two or three of those.
const fewSteps = 2

// An lstmWay is a way to walk through time.
type lstmWay struct {
	kernel   string
	resident bool // a launch takes all steps, else each has one
	whole    bool // the launch of a step makes the gates' share of the input too
	items    int  // of the batch in a block
	blocks   int  // of a group of items in one direction, if resident
	rule     string
}

// choose picks how to walk, and how far at a time.
func (r *recurrence) choose() {
	op, c := r.op, r.c
	r.stretch = op.Time
	// Of several stretches two are in memory at a time.
	if step := 4 * op.Batch * r.gateColumns(); step*op.Time > 2*stretchBytes {
		r.stretch = max(1, stretchBytes/step)
	}
	ways := r.ways()
	names := make([]string, len(ways))
	for i, w := range ways {
		names[i] = strings.TrimPrefix(w.kernel, "lstm_")
	}
	boundary := fmt.Sprintf("lstm %d×%d %d×%d", op.Batch, op.Time, r.hidden, r.directions)
	name, why := c.choose(boundary, ways[0].rule, names...)
	r.way, r.why = ways[slices.Index(names, name)], why
}

// ways returns those that the device has, the rule's choice first. Spread over a cluster,
// weights make a step shortest, as long as each item has a cluster of its own; a block for
// each item is next, and several items in a block last.
func (r *recurrence) ways() []lstmWay {
	tasks, sms := r.op.Batch*r.directions, r.c.d.attributes.sms
	var first, later []lstmWay
	add := func(w lstmWay, best bool) {
		if !r.c.has(w.kernel) {
			return
		}
		if best {
			first = append(first, w)
		} else {
			later = append(later, w)
		}
	}
	step := lstmWay{items: 1, rule: fmt.Sprintf("%d hidden units, a launch for each step", r.hidden)}
	for _, n := range kernels.LSTMStepItems {
		if r.op.Batch >= n {
			step.items = n
		}
	}
	if r.op.Time <= fewSteps && r.plain() {
		const most = 256 // items, beyond which tensor cores make the products sooner
		whole := step
		whole.kernel, whole.whole = fmt.Sprintf("lstm_whole_%d", step.items), true
		whole.rule = fmt.Sprintf("%d steps, each a launch", r.op.Time)
		add(whole, r.op.Batch <= most)
	}
	step.kernel = fmt.Sprintf("lstm_step_%d", step.items)
	add(step, r.op.Time <= fewSteps)

	// The most units whose weights a multiprocessor can hold alone. Where it cannot, some
	// rounds of clusters are better than a launch for each step.
	alone := kernels.LSTMResident[len(kernels.LSTMResident)-1].Hidden
	for _, k := range kernels.LSTMClusters {
		if r.hidden > k.Hidden {
			continue
		}
		// A cluster stays within one group of multiprocessors: a twelfth may be left over.
		// Pairs leave none.
		room := sms - sms/12
		if k.Blocks == 2 {
			room = sms
		}
		if k.Items > 1 {
			room *= 4
		}
		fits := ceilDiv(r.op.Batch, k.Items)*r.directions*k.Blocks <= room
		add(lstmWay{
			kernel: fmt.Sprintf("lstm_cluster_%dx%dx%d", k.Hidden, k.Blocks, k.Items), resident: true, items: k.Items, blocks: k.Blocks,
			rule: fmt.Sprintf("recurrent weights in clusters of %d blocks, %d items each", k.Blocks, k.Items),
		}, fits && r.hidden > alone/2 && (r.hidden > alone) == (k.Hidden > alone))
	}
	units := 0
	for _, k := range slices.Backward(kernels.LSTMResident) {
		if k.Hidden >= r.hidden {
			units = k.Hidden
		}
	}
	for _, k := range kernels.LSTMResident {
		if k.Hidden == units {
			add(lstmWay{
				kernel: fmt.Sprintf("lstm_resident_%dx%d", k.Hidden, k.Items), resident: true, items: k.Items, blocks: 1,
				rule: fmt.Sprintf("recurrent weights on the chip, %d items a block", k.Items),
			}, (k.Items > 1) == (tasks > sms))
		}
	}
	return append(first, later...)
}

// plain reports whether all input weights are F32.
func (r *recurrence) plain() bool {
	for _, l := range r.p.layers {
		if l.input.typ != pass.F32 {
			return false
		}
	}
	return true
}
