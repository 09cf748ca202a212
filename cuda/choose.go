package cuda

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/tandem-gpu/tandem/cuda/internal/tune"
)

// chooser knows what was measured, and remembers what it was asked.
type chooser struct {
	file  map[string]tune.Pin
	table map[string]tune.Pin

	mu     sync.Mutex
	forced map[string]string // by Config, and then by Force
	forces int               // how often Force was called
	asked  map[string]Boundary
}

// A Boundary is work that there are several ways to compute.
type Boundary struct {
	Name    string   // op, math and shape: "gemm exact 1500×1280×5120 f16"
	Ways    []string // those that this device could take, the rule's choice first
	Choice  string   // the one that is taken
	Because string   // where the choice comes from
}

// choose picks one of several ways to compute a step. The names are in the order of a
// rule, best first. What Config forces wins, then the tune file, then the table for this
// card, then the rule; the evidence goes into Dump.
//
// Different ways give results that differ within tolerance, so that two runs have the same
// bits only with the same tune file.
func (c *compiler) choose(boundary, rule string, names ...string) (name, evidence string) {
	key := strings.Join(append([]string{boundary}, names...), "\x00")
	if was, ok := c.chosen[key]; ok { // whatever is forced meanwhile: scratch was laid out for it
		return was[0], was[1]
	}
	defer func() {
		if c.chosen != nil {
			c.chosen[key] = [2]string{name, evidence}
		}
	}()
	h := &c.d.choices
	name, evidence = names[0], "by rule, not measured here: "+rule
	if pin, ok := h.table[boundary]; ok && slices.Contains(names, pin.Choice) {
		name, evidence = pin.Choice, fmt.Sprintf("measured on a card of this kind: %.3g us, the rule's %.3g us", pin.Seconds*1e6, pin.Rule*1e6)
	}
	if pin, ok := h.file[boundary]; ok && slices.Contains(names, pin.Choice) {
		name, evidence = pin.Choice, fmt.Sprintf("measured here: %.3g us, the rule's %.3g us", pin.Seconds*1e6, pin.Rule*1e6)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range []string{"", boundary} {
		if forced, ok := h.forced[key]; ok && slices.Contains(names, forced) {
			name, evidence = forced, "forced"
		}
	}
	if h.asked == nil {
		h.asked = map[string]Boundary{}
	}
	h.asked[boundary] = Boundary{Name: boundary, Ways: slices.Clone(names), Choice: name, Because: evidence}
	return name, evidence
}

// takes reports whether a way is forced wherever there is one of that name.
func (h *chooser) takes(way string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.forced[""] == way
}

// force sets a way at a boundary, or unsets it.
func (h *chooser) force(boundary, way string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forces++
	if way == "" {
		delete(h.forced, boundary)
		return
	}
	if h.forced == nil {
		h.forced = map[string]string{}
	}
	h.forced[boundary] = way
}

// version changes when what is chosen may.
func (h *chooser) version() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.forces
}

// boundaries returns what the device was asked to choose so far, by name.
func (h *chooser) boundaries() []Boundary {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Boundary
	for _, b := range h.asked {
		all = append(all, b)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// load reads what was measured.
func (h *chooser) load(path string, k tune.Key) error {
	pins, err := tune.Table(k)
	if err != nil {
		return err
	}
	h.table = byBoundary(pins)
	if path == "" {
		return nil
	}
	f, err := tune.ReadFile(path, k)
	h.file = byBoundary(f.Pins)
	return err
}

func byBoundary(pins []tune.Pin) map[string]tune.Pin {
	m := map[string]tune.Pin{}
	for _, p := range pins {
		m[p.Boundary] = p
	}
	return m
}
