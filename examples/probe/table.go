package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A text writes lines and keeps the first error.
type text struct {
	w   io.Writer
	err error
}

func (t *text) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// table writes rows of cells, aligned and indented. A dash stands for nothing.
func (t *text) table(rows [][]string) {
	if t.err != nil {
		return
	}
	w := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = cmp.Or(cell, "-")
		}
		fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
	}
	t.err = w.Flush()
}

// writeReport writes a report for people.
func writeReport(w io.Writer, r *Report) error {
	t := &text{w: w}
	t.printf("tandem %s, %s, %s, cgo %s\n\nDevices\n", r.Version, r.Go, r.Platform, onOff(r.Cgo))
	rows := [][]string{{"device", "backend", "name", "kind", "api", "driver", "usable"}}
	for _, d := range r.Devices {
		rows = append(rows, []string{d.Device, d.Backend, d.Name, d.Kind, strings.Join(d.APIs, " "), d.Driver, yesNo(d.Usable)})
	}
	t.table(rows)
	for _, d := range r.Devices {
		t.printf("\n%s\n", d.title())
		t.table(d.details())
	}
	writeSearch(t, r.Vulkan)
	if len(r.Modules) > 0 {
		t.printf("\nKernel drivers\n")
		rows = nil
		for _, m := range r.Modules {
			rows = append(rows, []string{m.Name, m.Version})
		}
		t.table(rows)
	}
	t.printf("\nEnvironment\n")
	rows = nil
	for _, s := range r.Environment {
		rows = append(rows, []string{s.Name, s.Value, s.Meaning})
	}
	t.table(rows)
	return t.err
}

func (d Device) title() string {
	title := cmp.Or(d.Device, d.Backend)
	if d.Name != "" {
		title += ": " + d.Name
	}
	return title
}

// details returns what there is to say about a device, a row each.
func (d Device) details() [][]string {
	if !d.Usable && d.Name == "" {
		return [][]string{{"not usable", d.Reason}}
	}
	var rows [][]string
	add := func(name, value string) { rows = append(rows, []string{name, value}) }
	if d.Usable {
		add("usable", fmt.Sprintf("opened in %.1f ms", d.OpenMS))
		if d.Reason != "" {
			add("order", d.Reason)
		}
	} else {
		add("not usable", d.Reason)
	}
	if d.VendorID != "" {
		add("vendor", fmt.Sprintf("%s (%s), device %s", d.Vendor, d.VendorID, d.DeviceID))
	}
	if d.Provider != "" {
		add("provider", d.Provider)
	}
	if c := d.CUDA; c != nil {
		add("uuid", c.UUID)
		add("capability", c.Capability)
		add("multiprocessors", strconv.Itoa(c.SMs))
		if d.Provider == "" {
			add("library", c.Library)
		}
	}
	if d.Threads > 0 {
		add("threads", strconv.Itoa(d.Threads))
	}
	if d.Memory > 0 {
		add("memory", size(d.Memory))
	} else {
		add("memory", "unknown: the API does not tell")
	}
	if d.Adapter != nil {
		add("features", strings.Join(d.Features, ", "))
	}
	for _, l := range d.Limits {
		if d.CUDA != nil && !strings.HasSuffix(l.Name, "bytes") {
			continue // what it is, which is said above
		}
		name, bytes := strings.CutSuffix(l.Name, " bytes")
		if bytes {
			add("limit: "+name, size(l.Value))
		} else {
			add("limit: "+name, strconv.FormatInt(l.Value, 10))
		}
	}
	for _, v := range d.Variants {
		add("variant: "+v.Name, fmt.Sprintf("%s: %s", onOff(v.Used), v.Reason))
	}
	return rows
}

func writeSearch(t *text, s Search) {
	if len(s.Loader)+len(s.Manifests)+len(s.Loaded) == 0 {
		return
	}
	t.printf("\nVulkan\n")
	var rows [][]string
	places := func(name string, list []Place) {
		for _, p := range list {
			state := "not there"
			if p.Found {
				state = "found"
			}
			rows = append(rows, []string{name, state, strings.TrimSuffix(p.Path+": "+p.Detail, ": ")})
		}
	}
	places("loader", s.Loader)
	places("driver", s.Manifests)
	for _, path := range s.Loaded {
		rows = append(rows, []string{"library", "loaded", path})
	}
	t.table(rows)
}

// writeResult writes the outcome of --device for people.
func writeResult(w io.Writer, r *Result) error {
	t := &text{w: w}
	rows := [][]string{{"device", r.Wanted}}
	add := func(name, value string) { rows = append(rows, []string{name, value}) }
	if d := r.Device; d != nil {
		rows[0][1] = d.Name
		add("reached", fmt.Sprintf("%s, %s, through %s", d.Backend, d.Kind, strings.Join(d.APIs, " ")))
		add("driver", d.Driver)
		for _, v := range d.Variants {
			if v.Name == "kernels" {
				add("kernels", v.Reason)
			}
		}
		add("opened in", fmt.Sprintf("%.1f ms", r.OpenMS))
	}
	if r.Passed {
		add("self-test", "passed: fill, copy and product have the right values")
		add("first run", fmt.Sprintf("%.1f ms, with loading and compiling", r.FirstMS))
		add("run again", fmt.Sprintf("%.3f ms", r.AgainMS))
	} else {
		add("failed", r.Failure)
	}
	t.table(rows)
	return t.err
}

// size writes bytes in binary units.
func size(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/(1<<10), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1 << 10
	}
	return fmt.Sprintf("%s %ciB", strconv.FormatFloat(v, 'f', precision(v), 64), units[i])
}

// precision is how many decimals a number needs: none if it is whole.
func precision(v float64) int {
	if v == float64(int64(v)) {
		return 0
	}
	return 1
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
