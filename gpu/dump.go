package gpu

import (
	"bufio"
	"fmt"
	"io"
	"time"
)

// Dump implements backend.Program: memory, kernels, then a line for each dispatch.
func (p *program) Dump(w io.Writer) error {
	b := bufio.NewWriter(w)
	sum, scratch := 0, 0
	for i, n := range p.words {
		sum += 4 * n
		if i >= p.scratch {
			scratch += 4 * n
		}
	}
	p.s.mu.Lock()
	shared, marks, groups := p.s.workspace.bytes(), len(p.marks), len(p.groups)
	p.s.mu.Unlock()
	fmt.Fprintf(b, "workspace: %d buffers of %d bytes in all, %d of them scratch; largest set alive %d bytes; the session's workspace has %d bytes\n",
		len(p.words), sum, scratch, 4*p.plan.Alive(), shared)
	n, took := p.s.d.kernels.count()
	fmt.Fprintf(b, "kernels: %d used here; %d on the device, compiled in %v\n", p.kernels(), n, took.Round(time.Microsecond))
	fmt.Fprintf(b, "submission: %d dispatches and %d marks, %d bind groups; %d bytes of inputs, %d of outputs, %d of constants\n",
		len(p.dispatches), marks, groups, 4*p.inputLen(), 4*p.outputLen(),
		4*(len(p.dispatches)*blockWords+len(p.fixed.fixed)))
	for i, d := range p.dispatches {
		bytes := 0
		for _, o := range d.operands {
			bytes += 4 * (o.end - o.first)
		}
		fmt.Fprintf(b, "%4d %-12s %v grid %d×%d×%d, %d operands of %d bytes, %.3g FLOP, %.3g bytes moved, compiled in %v\n",
			i, d.label, d.kernel.kernel, d.groups[0], d.groups[1], d.groups[2],
			len(d.operands), bytes, d.cost.FLOP, d.cost.Bytes, d.kernel.took.Round(time.Microsecond))
	}
	return b.Flush()
}

// kernels returns how many different kernels the program uses.
func (p *program) kernels() int {
	used := map[*pipeline]bool{}
	for _, d := range p.dispatches {
		used[d.kernel] = true
	}
	return len(used)
}
