package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tandem-gpu/tandem/pass"
)

// A result is what was measured of a case on a device. Times are seconds of one op.
type result struct {
	Name     string  `json:"name"`
	Shape    string  `json:"shape"`
	Device   string  `json:"device"`              // as on the command line
	Runs     int     `json:"runs"`                // samples
	Ops      int     `json:"ops"`                 // in a run
	Median   float64 `json:"median"`              // seconds
	Min      float64 `json:"min"`                 // seconds
	Spread   float64 `json:"spread"`              // from the 10th to the 90th percentile, as a share of the median
	FLOPs    float64 `json:"flops,omitempty"`     // operations a second, of the median
	Bytes    float64 `json:"bytes,omitempty"`     // bytes a second, of the median
	RealTime float64 `json:"real_time,omitempty"` // seconds of audio a second, of the median
	Note     string  `json:"note,omitempty"`
	Error    string  `json:"error,omitempty"` // why there are no numbers
}

// A report prints results as they come and keeps them.
type report struct {
	opt      options
	targets  []*target
	w        io.Writer
	writeErr error // first of w
	results  []result

	Command string         `json:"command"`
	Date    string         `json:"date"`
	Go      string         `json:"go"`
	CPUs    int            `json:"cpus"`
	Math    string         `json:"math"`
	Devices []deviceReport `json:"devices"`
}

// A deviceReport says what was measured.
type deviceReport struct {
	Name string    `json:"name"` // as on the command line
	Info pass.Info `json:"info"`
}

func newReport(opt options, targets []*target, w io.Writer) *report {
	r := &report{
		opt: opt, targets: targets, w: w,
		Command: commandLine(opt.args),
		Date:    time.Now().Format(time.RFC3339),
		Go:      fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH),
		CPUs:    runtime.GOMAXPROCS(0),
		Math:    opt.math.String(),
	}
	for _, t := range targets {
		r.Devices = append(r.Devices, deviceReport{t.name, t.dev.Info()})
	}
	return r
}

// commandLine writes the arguments as a shell takes them.
func commandLine(args []string) string {
	words := []string{"bench"}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n|&;<>()$`\\\"'*?[]#~%{}!^") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

func (r *report) printf(format string, a ...any) {
	if _, err := fmt.Fprintf(r.w, format, a...); err != nil && r.writeErr == nil {
		r.writeErr = err
	}
}

// header says what is measured, where and how.
func (r *report) header() {
	for _, t := range r.targets {
		r.printf("device   %s: %s\n", t.name, t.about())
	}
	r.printf("go       %s, %d CPUs\n", r.Go, r.CPUs)
	r.printf("date     %s\n", r.Date)
	r.printf("command  %s\n", r.Command)
	r.printf("math     %s\n\n", r.Math)
	r.line("name", "shape", "device", "median", "min", "spread", "runs", "TFLOP/s", "GB/s", "× real", "")
}

// line prints a row. The column of the device is there if there are two.
func (r *report) line(name, shape, device, median, least, spread, runs, flops, bytes, real, note string) {
	text := pad(name, 33) + " " + pad(shape, 46) + " "
	if len(r.targets) > 1 {
		text += pad(device, 10) + " "
	}
	for _, column := range []string{median, least, spread, runs, flops, bytes, real} {
		text += fmt.Sprintf(" %9s", column)
	}
	if note != "" {
		text += "  " + note
	}
	r.printf("%s\n", strings.TrimRight(text, " "))
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}

// rows prints the results of a case and, if there are two, how they compare. It returns
// whether none failed.
func (r *report) rows(c benchmarkCase, results []result) bool {
	good := true
	for _, x := range results {
		if x.Error != "" {
			good = false
			r.printf("%s %s failed on %s: %s\n", pad(c.name, 33), pad(c.shape, 46), x.Device, x.Error)
			continue
		}
		r.line(x.Name, x.Shape, x.Device, duration(x.Median), duration(x.Min), fmt.Sprintf("%.1f %%", 100*x.Spread),
			count(x), number(x.FLOPs/1e12), number(x.Bytes/1e9), number(x.RealTime), x.Note)
	}
	if good && len(results) == 2 && results[0].Median > 0 {
		r.line("", "", "ratio", number(results[1].Median/results[0].Median), "", "", "", "", "", "",
			fmt.Sprintf("median of %s / %s", results[1].Device, results[0].Device))
	}
	r.results = append(r.results, results...)
	return good
}

// count is the number of runs and of ops in a run.
func count(x result) string {
	if x.Ops == 1 {
		return fmt.Sprint(x.Runs)
	}
	return fmt.Sprintf("%d×%d", x.Runs, x.Ops)
}

// find returns the results of a case.
func (r *report) find(name string) []result {
	var found []result
	for _, x := range r.results {
		if x.Name == name {
			found = append(found, x)
		}
	}
	return found
}

// duration writes seconds with four digits. Differences may be negative.
func duration(s float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}} {
		if math.Abs(s) >= u.size {
			return fmt.Sprintf("%.4g %s", s/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.4g ns", s/1e-9)
}

// number writes a rate, or nothing for 0.
func number(v float64) string {
	switch {
	case v == 0:
		return ""
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// writeJSON writes everything.
func (r *report) writeJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		*report
		Results []result `json:"results"`
	}{r, r.results})
}
