// Command tune measures the ways to compute on an NVIDIA GPU and writes a tune file, which
// makes the cuda backend take those that are quickest here:
//
//	tune --device cuda --out h200.json
//	TANDEM_CUDA_TUNE=h200.json myprogram
//
// What is measured are the ops of speech networks in the sizes that they have there. Each
// way is compared with float64 before it is timed, and one whose results are off is never
// taken.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/pass"
)

// The exit codes; usage lists them.
const (
	exitGood        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	p := program{open: openDevice, work: workList(), stdout: os.Stdout, stderr: os.Stderr}
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// A program is the command with what it works on.
type program struct {
	open           func(ctx context.Context, name string) (pass.Device, error)
	work           []work
	stdout, stderr io.Writer
}

// openDevice opens the device that --device names. What is measured must not depend on an
// earlier tune file, nor be refused because there is one.
func openDevice(ctx context.Context, name string) (pass.Device, error) {
	if err := os.Unsetenv("TANDEM_CUDA_TUNE"); err != nil {
		return nil, err
	}
	return device.Open(ctx, name)
}

// run is the program. It returns the exit code.
func (p program) run(ctx context.Context, args []string) int {
	opt, err := parse(args)
	if errors.Is(err, errHelp) {
		fmt.Fprint(p.stdout, usage)
		return exitGood
	}
	if err == nil && opt.list {
		for _, w := range opt.choose(p.work) {
			fmt.Fprintln(p.stdout, w.name)
		}
		return exitGood
	}
	if err == nil {
		err = p.tune(ctx, opt)
	}
	switch {
	case err == nil:
		return exitGood
	case errors.Is(err, errUsage):
		fmt.Fprintf(p.stderr, "tune: %s; see tune --help\n", device.Line(err))
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(p.stderr, "tune: interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(p.stderr, "tune: %s\n", device.Line(err))
	return exitFailed
}
