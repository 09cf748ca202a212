// Command vad finds the speech in recordings and in live audio.
//
//	vad [flags] [file.wav … | -]
//
// Without a file it listens to a recording that is part of the program. See --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/model/silero"
)

// The exit codes; usage lists them.
const (
	exitGood        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitTruncated   = 3
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	opt, err := parse(args)
	if errors.Is(err, errHelp) {
		fmt.Fprint(stdout, usage())
		return exitGood
	}
	if err != nil {
		fmt.Fprintf(stderr, "vad: %v; see vad --help\n", device.Line(err))
		return exitUsage
	}
	p := &program{opt: opt, machine: thisMachine, stdin: stdin, stdout: stdout, stderr: stderr}
	if err := p.run(ctx); err != nil {
		p.fail(ctx, err)
	}
	return p.code
}

// A program is one call of vad.
type program struct {
	opt            options
	machine        machine
	stdin          io.Reader
	stdout, stderr io.Writer
	code           int
}

func (p *program) run(ctx context.Context) error {
	if p.opt.listDevices {
		return p.listDevices(ctx)
	}
	dev, about, err := p.machine.openDevice(ctx, p.opt.device)
	if err != nil {
		return err
	}
	defer dev.Close()
	for _, line := range about {
		if !p.opt.quiet {
			fmt.Fprintf(p.stderr, "vad: %s\n", line)
		}
	}
	model, err := silero.Load(ctx, dev, silero.Embedded())
	if err != nil {
		return err
	}
	defer model.Close()
	if p.opt.stream {
		return p.listen(ctx, model)
	}
	return p.files(ctx, model)
}

// fail says what went wrong, in one line, and sets the exit code.
func (p *program) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		fmt.Fprintln(p.stderr, "vad: interrupted")
		p.code = exitInterrupted
		return
	}
	fmt.Fprintf(p.stderr, "vad: %s\n", device.Line(err))
	p.code = exitFailed
}
