// Command bench measures what a device does, and how fast: what calls cost, single ops,
// and whole networks.
//
//	bench --device gpu
//	bench --device cpu:1 --run 'silero|gemm/512'
//
// A device is named, never guessed, and no other one takes its place. Every op is
// compared with float64 before it is timed, so that a wrong kernel cannot win. Of whole
// networks with random weights only numbers that are finite are wanted: the tests of their
// packages compare them. How times are taken is said in measure.go and kernel.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/tandem-gpu/tandem/examples/internal/device"
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
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opt, err := parse(args)
	if errors.Is(err, errHelp) {
		fmt.Fprint(stdout, usage)
		return exitGood
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %s; see bench --help\n", device.Line(err))
		return exitUsage
	}
	chosen := opt.choose(groups())
	if len(chosen) == 0 {
		fmt.Fprintf(stderr, "bench: --run: no case matches %q; see bench --help\n", opt.run)
		return exitUsage
	}
	if opt.list {
		for _, c := range chosen {
			fmt.Fprintln(stdout, c.name)
		}
		return exitGood
	}
	err = benchmark(ctx, opt, chosen, stdout)
	switch {
	case err == nil:
		return exitGood
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "bench: interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "bench: %s\n", device.Line(err))
	return exitFailed
}
