package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/model/silero"
)

const usageText = `Finds the speech in recordings and in live audio.

usage: vad [flags] [file.wav ... | -]

Files are WAVE files of any rate and any number of channels; - is one on standard
input. Without a file, a recording that is part of the program is used.

device
  --device NAME      auto (the default: the first that works of cuda, gpu and cpu), cuda,
                     gpu, software (a GPU API on the CPU), cpu, or one by its name in
                     --list-devices, such as cuda:0 or gpu:1; cpu:N has N threads
  --list-devices     list what there is and what there is not, and end

output
  --format FORMAT    table (the default), json, rttm, or labels (Audacity)
  --probabilities    print the probability of speech of each 32 ms, one a line, instead
  --plot FILE.png    also draw waveform, probability and speech of one recording
  --quiet            nothing but errors on standard error

speech
  --threshold P      probability at which speech begins (%v); it goes on until the
                     probability is below P - 0.15 for the minimum silence
  --min-speech D     shorter speech is dropped (%v)
  --min-silence D    shorter silence does not end speech (%v)
  --speech-pad D     added before and after speech (%v)
  --max-speech D     longer speech is split (0: it is not)
Durations are milliseconds (250) or have a unit (250ms, 1.5s).

live
  --stream           read standard input, a WAVE file or raw samples (16-bit, little
                     endian, mono, 16 kHz), and print what is found as it is found: a line
                     for each start and end (table, json), for each segment (rttm, labels)
                     or for each 32 ms (--probabilities). For instance
                     arecord -q -t raw -f S16_LE -r 16000 -c 1 | vad --stream

exit code
  0    all is well, whether or not there was speech
  1    a file or the device failed; results of other files are complete
  2    the command line is wrong
  3    a file ends before the length that its header claims; results are for what is there
  130  interrupted (Ctrl-C)
`

var (
	errHelp = errors.New("help")
	formats = []string{"table", "json", "rttm", "labels"}
)

func usage() string {
	d := silero.DefaultParams()
	return fmt.Sprintf(usageText, d.Threshold, d.MinSpeech, d.MinSilence, d.SpeechPad)
}

// options are the command line.
type options struct {
	device        string
	listDevices   bool
	format        string
	probabilities bool
	plot          string
	params        silero.Params
	stream        bool
	quiet         bool
	files         []string // "-": standard input; none: the recording of the program
}

// parse reads the command line. Flags and files may come in any order; all after "--" are
// files.
func parse(args []string) (options, error) {
	opt := options{params: silero.DefaultParams()}
	set := flag.NewFlagSet("vad", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&opt.device, "device", "auto", "")
	set.BoolVar(&opt.listDevices, "list-devices", false, "")
	set.StringVar(&opt.format, "format", formats[0], "")
	set.BoolVar(&opt.probabilities, "probabilities", false, "")
	set.StringVar(&opt.plot, "plot", "", "")
	set.BoolVar(&opt.stream, "stream", false, "")
	set.BoolVar(&opt.quiet, "quiet", false, "")
	set.Float64Var(&opt.params.Threshold, "threshold", opt.params.Threshold, "")
	set.Var((*duration)(&opt.params.MinSpeech), "min-speech", "")
	set.Var((*duration)(&opt.params.MinSilence), "min-silence", "")
	set.Var((*duration)(&opt.params.SpeechPad), "speech-pad", "")
	set.Var((*duration)(&opt.params.MaxSpeech), "max-speech", "")
	for rest := args; ; {
		if err := set.Parse(rest); errors.Is(err, flag.ErrHelp) {
			return opt, errHelp
		} else if err != nil {
			return opt, err
		}
		left := set.Args()
		if n := len(rest) - len(left); n > 0 && rest[n-1] == "--" {
			opt.files = append(opt.files, left...)
			break
		}
		if len(left) == 0 {
			break
		}
		opt.files = append(opt.files, left[0])
		rest = left[1:]
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return opt, opt.check(given)
}

// check looks for values and combinations that make no sense.
func (o *options) check(given map[string]bool) error {
	if o.device != "auto" {
		if err := device.Check(o.device); err != nil {
			return fmt.Errorf("--device: %w", err)
		}
	}
	if !slices.Contains(formats, o.format) {
		return fmt.Errorf("--format: want one of %s, given %q", strings.Join(formats, ", "), o.format)
	}
	if o.probabilities && given["format"] {
		return errors.New("--probabilities and --format: want one of them, given both")
	}
	if given["plot"] && o.plot == "" {
		return errors.New("--plot: want a file name, given none")
	}
	if o.plot != "" && !strings.EqualFold(filepath.Ext(o.plot), ".png") {
		// Any other name may be that of a recording, given in the wrong place.
		return fmt.Errorf("--plot: want a file name that ends in .png, given %q", o.plot)
	}
	if o.plot != "" && len(o.files) > 1 {
		return fmt.Errorf("--plot: want one recording, given %d", len(o.files))
	}
	if o.plot != "" && o.stream {
		return errors.New("--plot and --stream: want one of them, given both")
	}
	if slices.Contains(o.files, "") { // a variable of a script that is not set
		return errors.New("want the name of a file, given an empty one")
	}
	if i := slices.Index(o.files, "-"); i >= 0 && slices.Contains(o.files[i+1:], "-") {
		return errors.New("standard input: want it once, given twice")
	}
	if o.stream && len(o.files) > 0 && !slices.Equal(o.files, []string{"-"}) {
		return fmt.Errorf("--stream: want standard input only, given %q", o.files[0])
	}
	if err := o.params.Check(); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "silero: "))
	}
	return nil
}

// A duration is a flag in milliseconds, or with a unit.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

func (d *duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if ms, e := strconv.ParseFloat(s, 64); e == nil {
		v, err = time.Duration(ms*float64(time.Millisecond)), nil
		if !(ms >= 0 && ms <= 1e12) {
			v = -1
		}
	}
	if err != nil || v < 0 {
		return errors.New("want milliseconds (250) or a duration with a unit (250ms, 1.5s), at least 0")
	}
	*d = duration(v)
	return nil
}
