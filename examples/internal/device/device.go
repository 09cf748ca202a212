// Package device opens devices by the names that the examples take on their command lines.
package device

import (
	"context"
	"strings"

	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
)

// Open opens the device of a name, and no other: "cuda", "gpu", "software" or "cpu", as
// tandem.Open has them; "cuda:" and the number, UUID or name of one GPU; or else a GPU
// adapter, by its number in the list of examples/probe or by (a part of) its name.
func Open(ctx context.Context, name string) (pass.Device, error) {
	switch name {
	case "cuda", "gpu", "software", "cpu":
		return tandem.Open(ctx, name)
	}
	if one, ok := strings.CutPrefix(name, "cuda:"); ok {
		return cuda.Open(ctx, cuda.Config{Device: one})
	}
	return gpu.Open(ctx, gpu.Config{Adapter: name})
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
