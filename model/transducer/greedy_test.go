package transducer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// The rules of the search, one choice after the other at a frame.
func TestAdvance(t *testing.T) {
	t.Parallel()
	const blank = 9
	rnnt := Config{Classes: 10, Blank: blank, MaxSymbols: 3}
	tdt := rnnt
	tdt.Durations = []int{0, 1, 2, 3, 4}
	for name, c := range map[string]struct {
		cfg      Config
		choices  []Choice
		advances []int
	}{
		"a token stays":                     {rnnt, []Choice{{1, 0}, {2, 0}}, []int{0, 0}},
		"a blank goes on":                   {rnnt, []Choice{{blank, 0}, {1, 0}}, []int{1, 0}},
		"the last allowed goes on":          {rnnt, []Choice{{1, 0}, {1, 0}, {1, 0}, {1, 0}}, []int{0, 0, 1, 0}},
		"a blank ends the count":            {rnnt, []Choice{{1, 0}, {1, 0}, {blank, 0}, {1, 0}, {1, 0}, {1, 0}}, []int{0, 0, 1, 0, 0, 1}},
		"a duration":                        {tdt, []Choice{{1, 3}, {1, 0}, {1, 4}}, []int{3, 0, 4}},
		"a blank with one":                  {tdt, []Choice{{blank, 4}, {blank, 1}}, []int{4, 1}},
		"a blank with none":                 {tdt, []Choice{{blank, 0}}, []int{1}},
		"a duration ends the count":         {tdt, []Choice{{1, 0}, {1, 0}, {1, 2}, {1, 0}, {1, 0}, {1, 0}}, []int{0, 0, 2, 0, 0, 1}},
		"the last allowed with a duration":  {tdt, []Choice{{1, 0}, {1, 0}, {1, 4}, {1, 0}}, []int{0, 0, 4, 0}},
		"the last allowed without, and two": {tdt, []Choice{{1, 0}, {1, 0}, {1, 0}, {1, 0}, {blank, 0}}, []int{0, 0, 1, 0, 1}},
	} {
		symbols, frame := 0, 5
		for i, choice := range c.choices {
			s := c.cfg.advance(choice, frame, &symbols)
			require.Equal(t, Step{frame, choice.Token, c.advances[i]}, s, "%s: step %d", name, i)
			frame += s.Advance
		}
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	good := Config{Width: 8, Classes: 4, Blank: 3, Durations: []int{0, 2}}
	require.NoError(t, good.Check())
	for _, change := range []func(*Config){
		func(c *Config) { c.Width = 0 }, func(c *Config) { c.Width = 1 << 30 },
		func(c *Config) { c.Classes = 1 }, func(c *Config) { c.Classes = 1 << 40 },
		func(c *Config) { c.Blank = 4 }, func(c *Config) { c.Blank = -1 },
		func(c *Config) { c.MaxSymbols = -1 }, func(c *Config) { c.Durations = []int{-1} },
		func(c *Config) { c.Durations = []int{1 << 20} }, func(c *Config) { c.Durations = make([]int, 1000) },
	} {
		bad := good
		change(&bad)
		require.ErrorIs(t, bad.Check(), pass.ErrInvalid, "%+v", bad)
	}
}
