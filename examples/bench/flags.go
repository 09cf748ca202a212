package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/pass"
)

const usage = `Measures what a device does, and how fast.

usage: bench --device NAME [flags]

  --device NAME    cuda, gpu, software (a GPU API on the CPU), cpu, or one by its name in
                   the list of examples/probe, such as cuda:0 or gpu:1; cpu:N has N threads
  --compare NAME   measure a second device in turn with the first, and print the ratio
  --run REGEXP     only the cases whose name has a match; the largest networks are measured
                   only if it is given
  --list           print the names of the cases, and end
  --time TIME      how long to measure each case (default 1s)
  --rest TIME      let a device rest so long before each case, rather than work until it is
                   warm: what a program finds that computes now and then, if --time is short
                   (20ms), since a large GPU slows down once it has reached its power limit
  --math MATH      exact (the default), or fast: operands of products may be rounded
  --json FILE      also write all results to a file

Columns: the median and the least time of one op, and the spread, which is how far the
90th percentile lies above the 10th, as a share of the median; runs are the samples, of so
many ops each. TFLOP/s and GB/s are of the median, with the operations and bytes that the
op itself must do; caches may serve some of the bytes. Networks have a note of what they
hold on the device: weights as in files, workspace, and state, which are buffers and caches.

exit code
  0    every case was right and was measured
  1    a device or a case failed, or a result was wrong; other results are printed
  2    the command line is wrong
  130  interrupted (Ctrl-C)
`

var errHelp = errors.New("help")

// options are the command line.
type options struct {
	args    []string // as given
	device  string
	compare string // empty: nothing
	run     *regexp.Regexp
	list    bool
	pace    pace
	math    pass.Math
	json    string
}

// parse reads the command line.
func parse(args []string) (options, error) {
	opt := options{args: args}
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&opt.device, "device", "", "")
	set.StringVar(&opt.compare, "compare", "", "")
	pattern := set.String("run", "", "")
	set.BoolVar(&opt.list, "list", false, "")
	set.DurationVar(&opt.pace.time, "time", time.Second, "")
	set.DurationVar(&opt.pace.rest, "rest", 0, "")
	math := set.String("math", "exact", "")
	set.StringVar(&opt.json, "json", "", "")
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return opt, errHelp
	} else if err != nil {
		return opt, err
	}
	if set.NArg() > 0 {
		return opt, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	var err error
	if opt.run, err = regexp.Compile(*pattern); err != nil {
		return opt, fmt.Errorf("--run: %w", err)
	}
	switch *math {
	case pass.Exact.String():
	case pass.Fast.String():
		opt.math = pass.Fast
	default:
		return opt, fmt.Errorf("--math: want exact or fast, given %q", *math)
	}
	switch {
	case opt.pace.time <= 0:
		return opt, fmt.Errorf("--time: want a time above 0, given %v", opt.pace.time)
	case opt.pace.rest < 0:
		return opt, fmt.Errorf("--rest: want no time below 0, given %v", opt.pace.rest)
	case opt.device == "" && !opt.list:
		return opt, errors.New("--device: want the name of a device, given none")
	}
	for flag, name := range map[string]string{"--device": opt.device, "--compare": opt.compare} {
		if name == "" {
			continue
		}
		if err := device.Check(name); err != nil {
			return opt, fmt.Errorf("%s: %w", flag, err)
		}
	}
	return opt, nil
}

// choose returns the cases that --run matches, in order. Without it, large ones are listed
// but not measured.
func (o options) choose(all []group) []benchmarkCase {
	var chosen []benchmarkCase
	for _, g := range all {
		for _, c := range g.cases {
			c.name = g.name + "/" + c.name
			if o.run.MatchString(c.name) && (o.list || !c.large || o.run.String() != "") {
				chosen = append(chosen, c)
			}
		}
	}
	return chosen
}
