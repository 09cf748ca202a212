package whisper

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/vocabulary"
)

func logOf(v float64) float64 { return math.Log(v) }

// What may follow some ids, by the rules of the authors' decoder.
func TestTimestampRules(t *testing.T) {
	t.Parallel()
	c := smallConfig()
	c.Tokens.FirstTimestamp = 10
	c.Tokens.NoTimestamps, c.Tokens.End, c.Tokens.Start = 9, 6, 7
	c.Suppress, c.SuppressAtBegin, c.Classes = []int{1}, []int{2}, 80
	allowed := func(ids []int, logits map[int]float32) (out []int) {
		row := make([]float32, c.Classes)
		for i := range row {
			row[i] = -20
		}
		for i, v := range logits {
			row[i] = v
		}
		c.timestampRules(row, ids)
		for i, v := range row {
			if v != never {
				out = append(out, i)
			}
		}
		return out
	}
	span := func(from, to int) (out []int) {
		for i := from; i < to; i++ {
			out = append(out, i)
		}
		return out
	}
	text := map[int]float32{3: 5}
	for _, r := range []struct {
		name   string
		ids    []int
		logits map[int]float32
		want   []int
	}{
		{"the first is a timestamp of at most 1 s", nil, text, span(10, 61)},
		{"after the first timestamp comes text", []int{12}, text, []int{0, 2, 3, 4, 5, 6, 7, 8}},
		{"after text, all but what went back", []int{12, 3}, text, append([]int{0, 2, 3, 4, 5, 6, 7, 8}, span(13, 80)...)},
		{"a timestamp that ends has its pair, at the same time or later, or the text ends", []int{12, 3, 15}, map[int]float32{6: 5}, append([]int{6, 7, 8}, span(15, 80)...)},
		{"after a pair comes text", []int{12, 3, 15, 15}, text, []int{0, 2, 3, 4, 5, 6, 7, 8}},
		{"timestamps likelier in sum than any other", []int{12, 3}, map[int]float32{3: 5, 20: 4.5, 21: 4.5}, span(13, 80)},
		{"timestamps less likely in sum", []int{12, 3}, map[int]float32{3: 5, 20: 4.2, 21: 4.2}, append([]int{0, 2, 3, 4, 5, 6, 7, 8}, span(13, 80)...)},
	} {
		require.Equal(t, r.want, allowed(r.ids, r.logits), r.name)
	}
}

func TestSegments(t *testing.T) {
	t.Parallel()
	cfg := smallConfig()
	cfg.Vocabulary = vocabulary.New(vocabulary.ByteLevel, "Ġa", "b", "Ġc")
	m := &Model{cfg: cfg}
	const first, end = 48, 27
	for _, c := range []struct {
		ids  []int
		want []Segment
		next int           // samples
		time time.Duration // of the pair there
	}{
		{[]int{end}, nil, 6400, 0},
		{[]int{first, 0, 1, first + 5, end}, []Segment{{0, 5 * tick, []int{0, 1}, "ab"}}, 6400, 0},
		{[]int{first, 0, first + 5, first + 6, 1, 2, first + 9, first + 9, end},
			[]Segment{{0, 5 * tick, []int{0}, "a"}, {6 * tick, 9 * tick, []int{1, 2}, "b c"}}, 9 * 320, 9 * tick},
		{[]int{first + 1, 0, first + 5, first + 5, 1}, []Segment{{1 * tick, 5 * tick, []int{0}, "a"}, {5 * tick, 20 * tick, []int{1}, "b"}}, 5 * 320, 5 * tick},
		{[]int{first, 2, end}, []Segment{{0, 20 * tick, []int{2}, "c"}}, 6400, 0},
	} {
		require.Equal(t, c.want, m.segments(c.ids), "%v", c.ids)
		next, at := cfg.complete(c.ids)
		require.Equal(t, c.next, next, "%v", c.ids)
		require.Equal(t, c.time, at, "%v", c.ids)
	}
}
