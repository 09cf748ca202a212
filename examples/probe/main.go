// Command probe shows every device and backend that tandem finds: what is usable, each
// reason for what is not, drivers, limits and memory, where the Vulkan loader was looked
// for, and which environment variables are in effect. With --device it opens one device
// and checks that it computes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/device"
)

const usage = `usage: probe [flags]

Shows every device and backend, what is usable, and why the rest is not.

  --device NAME   open one device and check that it computes: cuda, gpu, software, cpu, or
                  one by its name in the list, such as cuda:0 or gpu:1; the number may be
                  a UUID of cuda's and (a part of) a name too
  --json          print JSON; the fields are described in examples/probe/report.go
  --timeout TIME  the longest that opening one device may take (default 30s)

exit status
  0  at least one device is usable; with --device: that one opened and computed rightly
  1  none is, or the device failed
  2  the command line is wrong
`

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	name := flags.String("device", "", "")
	asJSON := flags.Bool("json", false, "")
	timeout := flags.Duration("timeout", 30*time.Second, "")
	err := flags.Parse(args)
	switch {
	case err == flag.ErrHelp:
		fmt.Fprint(stdout, usage)
		return exitOK
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && *timeout <= 0:
		err = fmt.Errorf("--timeout: want a time above 0, given %v", *timeout)
	case err == nil && *name != "":
		if err = device.Check(*name); err != nil {
			err = fmt.Errorf("--device: %w", err)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "probe: %v; see probe --help\n", err)
		return exitUsage
	}
	code := exitOK
	if *name != "" {
		result := check(ctx, *name, *timeout)
		if !result.Passed {
			code = exitFailed
		}
		err = show(stdout, *asJSON, result, func(w io.Writer) error { return writeResult(w, result) })
	} else {
		report := collect(ctx, devicesHere(ctx, *timeout))
		report.describeHost()
		if !report.usable() {
			code = exitFailed
		}
		err = show(stdout, *asJSON, report, func(w io.Writer) error { return writeReport(w, report) })
	}
	if err != nil {
		fmt.Fprintf(stderr, "probe: %v\n", err)
		return exitFailed
	}
	return code
}

// show prints a value as JSON or as text.
func show(w io.Writer, asJSON bool, value any, text func(io.Writer) error) error {
	if !asJSON {
		return text(w)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(value)
}
