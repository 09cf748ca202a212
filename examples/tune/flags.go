package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

const usage = `Measures the ways to compute on a GPU, and writes what is quickest to a tune file.

usage: tune --device NAME --out FILE [flags]

  --device NAME    cuda (the first usable GPU), or one by its name in the list of
                   examples/probe, such as cuda:0
  --out FILE       the tune file. One that is there, made on this GPU with this driver and
                   these kernels, keeps what is not measured now
  --force          overwrite a file that was made for anything else
  --dry-run        measure and print, but write nothing
  --run REGEXP     only the ops whose name has a match
  --list           print the names of the ops, and end
  --time TIME      how long to measure each way (default 100ms)
  --limit TIME     begin with no further op after that time; the most important come first
  --math MATH      exact: what recordings in exact math choose from; fast: what only those
                   choose from whose products may have rounded operands; or both (the
                   default)

Printed are the ways at each boundary, the rule's choice first: the median time of one op,
and the largest error of a sample against float64. A way is pinned if it takes at least 3 %
less than the one that would be taken without the file, and without that of
TANDEM_CUDA_TUNE. Ways that take far longer in a first run are not measured further.

exit code
  0    everything was measured, and the file is written
  1    the device or an op failed, or the rule's choice computed wrongly; the file has
       what was measured otherwise
  2    the command line is wrong
  130  interrupted (Ctrl-C); nothing is written
`

var (
	errHelp  = errors.New("help")
	errUsage = errors.New("usage") // matched, not printed
)

// A usageError is what is wrong with the command line.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == errUsage }

func wrongUsage(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// options are the command line.
type options struct {
	device string
	out    string
	force  bool
	dry    bool
	run    *regexp.Regexp
	list   bool
	time   time.Duration
	limit  time.Duration // 0: none
	math   []pass.Math
}

// parse reads the command line.
func parse(args []string) (options, error) {
	var opt options
	set := flag.NewFlagSet("tune", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&opt.device, "device", "", "")
	set.StringVar(&opt.out, "out", "", "")
	set.BoolVar(&opt.force, "force", false, "")
	set.BoolVar(&opt.dry, "dry-run", false, "")
	pattern := set.String("run", "", "")
	set.BoolVar(&opt.list, "list", false, "")
	set.DurationVar(&opt.time, "time", 100*time.Millisecond, "")
	set.DurationVar(&opt.limit, "limit", 0, "")
	math := set.String("math", "both", "")
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return opt, errHelp
	} else if err != nil {
		return opt, usageError{err}
	}
	if set.NArg() > 0 {
		return opt, wrongUsage("unexpected argument %q", set.Arg(0))
	}
	var err error
	if opt.run, err = regexp.Compile(*pattern); err != nil {
		return opt, wrongUsage("--run: %w", err)
	}
	switch *math {
	case "exact":
		opt.math = []pass.Math{pass.Exact}
	case "fast":
		opt.math = []pass.Math{pass.Fast}
	case "both":
		opt.math = []pass.Math{pass.Exact, pass.Fast}
	default:
		return opt, wrongUsage("--math: want exact, fast or both, given %q", *math)
	}
	switch {
	case opt.time <= 0:
		return opt, wrongUsage("--time: want a time above 0, given %v", opt.time)
	case opt.limit < 0:
		return opt, wrongUsage("--limit: want a time, given %v", opt.limit)
	case opt.device == "" && !opt.list:
		return opt, wrongUsage("--device: want the name of a GPU, given none")
	}
	return opt, nil
}

// choose returns the work that --run matches, in order.
func (o options) choose(all []work) []work {
	var chosen []work
	for _, w := range all {
		if o.run.MatchString(w.name) {
			chosen = append(chosen, w)
		}
	}
	return chosen
}
