package gpu

import (
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/shaders"
)

// Lanes is the geometry of kernels that take whole rows: lanes invocations share a row,
// and a workgroup has threads of them. It depends on columns and limits alone, so that
// rows have the same bits whatever part of an op they are in; see rows.wgsl.
type lanes struct {
	lanes, threads int
	held           int // quads that an invocation holds in registers; 0: more than it can
	each, groups   int // lanes is each·groups: the two steps of a sum
}

const (
	mostThreads = 256 // in a workgroup of rows
	mostHeld    = 8
	fewThreads  = 64 // a workgroup of narrow rows takes as many as that is enough for
	heldAimedAt = 6  // loads of an invocation that are in flight together
)

// chooseLanes returns the geometry for rows of a number of columns.
func chooseLanes(columns int, limits driver.Limits) lanes {
	most := threadsWithin(limits)
	quads := roundUp(columns, 4) / 4
	l := lanes{lanes: 1}
	for l.lanes < most && l.lanes*heldAimedAt < quads {
		l.lanes *= 2
	}
	if l.held = (quads + l.lanes - 1) / l.lanes; l.held > mostHeld {
		l.held = 0
	}
	l.threads = max(l.lanes, min(fewThreads, most))
	return l.inSteps()
}

// threadsWithin returns how many invocations a workgroup of rows has at most: a power
// of two.
func threadsWithin(limits driver.Limits) int {
	most := 1
	for 2*most <= int(min(limits.MaxInvocations, limits.MaxWorkgroupSizeX, mostThreads)) {
		most *= 2
	}
	return most
}

// inSteps says how sums over the lanes are taken.
func (l lanes) inSteps() lanes {
	const oneStep = 16
	l.each, l.groups = l.lanes, 1
	if l.lanes > oneStep {
		for l.each = 1; l.each*l.each < l.lanes; {
			l.each *= 2
		}
		l.groups = l.lanes / l.each
	}
	return l
}

// rows returns the rows of a workgroup.
func (l lanes) rows() int { return l.threads / l.lanes }

// set sets the constants that name the geometry.
func (l lanes) set(v shaders.Values) {
	v["Lanes"], v["Threads"], v["Each"], v["Groups"] = l.lanes, l.threads, l.each, l.groups
}
