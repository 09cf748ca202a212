// Package device opens devices by the names that the examples take on their command lines,
// and gives the names of those that there are.
package device

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// Check returns an error that wraps [pass.ErrInvalid] unless a name has a form that [Open]
// takes.
func Check(name string) error {
	backend, one, which := strings.Cut(name, ":")
	switch {
	case name == "software":
		return nil
	case backend != "cuda" && backend != "gpu" && backend != "cpu", which && one == "":
		return fmt.Errorf("want cuda, gpu, software or cpu, or cuda:N, gpu:N or cpu:N, given %q: %w", name, pass.ErrInvalid)
	case backend == "cpu" && which:
		if threads, err := strconv.Atoi(one); err != nil || threads < 1 {
			return fmt.Errorf("want cpu:N with a number of threads of at least 1, given %q: %w", name, pass.ErrInvalid)
		}
	}
	return nil
}

// Open opens the device of a name, and no other: "cuda", "gpu", "software" or "cpu", as
// tandem.Open has them; "cuda:" and the number, UUID or name of one GPU; "gpu:" and the
// number or (a part of) the name of one adapter; or "cpu:" and a number of threads.
func Open(ctx context.Context, name string) (pass.Device, error) {
	if err := Check(name); err != nil {
		return nil, err
	}
	backend, one, which := strings.Cut(name, ":")
	if !which {
		return tandem.Open(ctx, name)
	}
	switch backend {
	case "cuda":
		return cuda.Open(ctx, cuda.Config{Device: one})
	case "gpu":
		return gpu.Open(ctx, gpu.Config{Adapter: one})
	}
	threads, err := strconv.Atoi(one)
	if err != nil {
		return nil, err
	}
	return cpu.Open(cpu.Config{Threads: threads})
}

// Name returns the name by which [Open] opens a device of the list that tandem.Devices
// gives, or "" if its backend has none.
func Name(c tandem.Candidate) string {
	switch {
	case c.GPU != nil:
		return "cuda:" + strconv.Itoa(c.GPU.Ordinal)
	case c.Adapter != nil:
		return "gpu:" + strconv.Itoa(c.Adapter.Index)
	case c.Name != "":
		return c.Backend
	}
	return ""
}

// Reason is the text of an error of Open in one line, to be printed behind the name.
func Reason(err error, name string) string {
	text := strings.TrimPrefix(Line(err), "tandem: no device: ")
	return strings.TrimPrefix(text, name+": ")
}

// Line is the text of an error without line breaks, which joined errors have.
func Line(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' })
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}
