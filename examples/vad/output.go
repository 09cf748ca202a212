package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/tandem-gpu/tandem/model/silero"
)

// A result is what was found in one recording.
type result struct {
	name          string // as it was given
	samples       int    // at 16 kHz
	probabilities []float32
	segments      []silero.Segment
	envelope      []extremes // if there will be a plot
}

// seconds is a position or length in samples; in JSON it is a number of seconds.
type seconds int

func (s seconds) float() float64 { return float64(s) / silero.SampleRate }

func (s seconds) String() string { return fmt.Sprintf("%.3f", s.float()) }

// MarshalJSON implements json.Marshaler.
func (s seconds) MarshalJSON() ([]byte, error) { return json.Marshal(s.float()) }

// speech returns how much of the recording is speech.
func (r *result) speech() seconds {
	sum := 0
	for _, s := range r.segments {
		sum += s.End - s.Start
	}
	return seconds(sum)
}

// write writes results in the format that was asked for, which is one document for all
// of them in JSON, and one after the other else.
func (p *program) write(w io.Writer, results []*result) error {
	switch {
	case p.opt.probabilities:
		for _, r := range results {
			if len(p.opt.files) > 1 {
				fmt.Fprintf(w, "# %s\n", r.name)
			}
			for _, probability := range r.probabilities {
				writeProbability(w, probability)
			}
		}
	case p.opt.format == "json":
		return writeJSON(w, results)
	case p.opt.format == "table":
		for i, r := range results {
			if i > 0 {
				fmt.Fprintln(w)
			}
			writeTable(w, r)
		}
	default:
		for _, r := range results {
			for _, s := range r.segments {
				p.writeSegment(w, r.name, s)
			}
		}
	}
	return nil
}

func writeProbability(w io.Writer, probability float32) { fmt.Fprintf(w, "%.9f\n", probability) }

// writeSegment writes a line of RTTM or of labels.
func (p *program) writeSegment(w io.Writer, name string, s silero.Segment) {
	start, end := seconds(s.Start), seconds(s.End)
	if p.opt.format == "rttm" {
		fmt.Fprintf(w, "SPEAKER %s 1 %v %v <NA> <NA> speech <NA> <NA>\n", fileID(name), start, end-start)
		return
	}
	label := "speech"
	if len(p.opt.files) > 1 {
		label += " " + strings.Join(strings.Fields(name), " ")
	}
	fmt.Fprintf(w, "%v\t%v\t%s\n", start, end, label)
}

// fileID names a recording in RTTM, whose fields have no spaces.
func fileID(name string) string {
	base := filepath.Base(name)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	if id := strings.Join(strings.Fields(base), "_"); id != "" {
		return id
	}
	return "recording"
}

func writeTable(w io.Writer, r *result) {
	plural := "s"
	if len(r.segments) == 1 {
		plural = ""
	}
	fmt.Fprintf(w, "%s: %v s, %d segment%s, %v s of speech\n", r.name, seconds(r.samples), len(r.segments), plural, r.speech())
	if len(r.segments) > 0 {
		fmt.Fprintf(w, "%10s%10s%10s\n", "start", "end", "duration")
	}
	for _, s := range r.segments {
		fmt.Fprintf(w, "%10v%10v%10v\n", seconds(s.Start), seconds(s.End), seconds(s.End-s.Start))
	}
}

func writeJSON(w io.Writer, results []*result) error {
	type span struct {
		Start    seconds `json:"start"`
		End      seconds `json:"end"`
		Duration seconds `json:"duration"`
	}
	type recording struct {
		File     string  `json:"file"`
		Duration seconds `json:"duration"`
		Speech   seconds `json:"speech"`
		Segments []span  `json:"segments"`
	}
	document := make([]recording, 0, len(results))
	for _, r := range results {
		doc := recording{r.name, seconds(r.samples), r.speech(), []span{}}
		for _, s := range r.segments {
			doc.Segments = append(doc.Segments, span{seconds(s.Start), seconds(s.End), seconds(s.End - s.Start)})
		}
		document = append(document, doc)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(document)
}
