package goldens_test

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/pass"
)

// lstm is a stack of LSTM layers over items of full length, of their own lengths, or
// both.
func lstm(b *bench) goldens.Results {
	var config struct {
		Input, Hidden, Layers, Batch, Time int
		Bidirectional                      bool
		Lengths                            []int
	}
	require.NoError(b, b.Configuration(&config))
	directions := []string{""}
	if config.Bidirectional {
		directions = append(directions, "_reverse")
	}
	var layers [][]pass.LSTMCell
	for l := range config.Layers {
		var layer []pass.LSTMCell
		for _, d := range directions {
			name := func(s string) string { return fmt.Sprintf("lstm.%s_l%d%s", s, l, d) }
			bias := b.vector(name("bias_ih"), 4*config.Hidden)
			for i, v := range b.vector(name("bias_hh"), 4*config.Hidden) {
				bias[i] += v
			}
			layer = append(layer, pass.LSTMCell{Input: b.tensor(name("weight_ih")), Hidden: b.tensor(name("weight_hh")), Bias: bias})
		}
		layers = append(layers, layer)
	}
	w := b.load(pass.LSTMWeights{Layers: layers})
	states := config.Layers * len(directions)
	n := config.Batch * states * config.Hidden
	return b.run(func(p pass.Pass, output func(string, int) pass.View) {
		temp := func(n int) pass.View { return p.Temp(pass.F32, n).View() }
		// States lie [layer and direction][batch][hidden] in the case, items first here.
		turn := func(x, y pass.View, from, to int) {
			p.Do(pass.Permute{X: x, Y: y, Dims: [4]int{1, from, to, config.Hidden}, Order: [4]int{0, 2, 1, 3}})
		}
		op := pass.LSTM{X: b.upload(p, b.input("x", config.Batch, config.Time, config.Input)), W: w, Batch: config.Batch, Time: config.Time}
		if _, ok := b.Inputs["h0"]; ok {
			op.H0, op.C0 = temp(n), temp(n)
			turn(b.upload(p, b.input("h0", states, config.Batch, config.Hidden)), op.H0, states, config.Batch)
			turn(b.upload(p, b.input("c0", states, config.Batch, config.Hidden)), op.C0, states, config.Batch)
		}
		for name := range b.Outputs {
			prefix, ok := strings.CutSuffix(name, "output")
			if !ok {
				continue
			}
			op.Y, op.H, op.C = output(name, config.Batch*config.Time*len(directions)*config.Hidden), temp(n), temp(n)
			op.Lengths = pass.Items{}
			// A case with both has the full lengths without a prefix.
			if _, both := b.Outputs["ragged_output"]; prefix != "" || !both {
				op.Lengths = pass.Fixed(config.Lengths...)
			}
			p.Do(op)
			turn(op.H, output(prefix+"h_n", n), config.Batch, states)
			turn(op.C, output(prefix+"c_n", n), config.Batch, states)
		}
	})
}
