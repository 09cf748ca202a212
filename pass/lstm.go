package pass

// LSTM runs a stack of LSTM layers over time. With the gates i, f, g, o of a step,
// each a row of weights times the step's input plus a row times the last h plus bias:
//
//	c = sigmoid(f)·c + sigmoid(i)·tanh(g)
//	h = sigmoid(o)·tanh(c)
//
// A layer of two directions gives [forward | backward], and takes the like from the
// layer below. The backward direction starts at an item's last step.
//
// The initial state (H0, C0) is zero if not given; the final state (H, C), that after
// an item's last step in either direction, is stored if asked for. Both may be the
// same views, in place. A state has a row for each of States items, and in it h or c
// of every layer and direction: [row][layer·directions + direction][hidden]. StateRows
// says which row each item of the batch uses; other rows are left alone. An item of
// length 0 has its initial state as its final state.
type LSTM struct {
	X         View  // [Batch][Time][in]
	W         Param // LSTMWeights
	Y         View  // [Batch][Time][directions·hidden]; zero at or beyond an item's length
	Batch     int   // 0: one item
	Time      int   // steps
	Lengths   Items // steps of each item; zero: Time
	H0, C0    View  // initial state; both or neither
	H, C      View  // final state; both or neither, in different buffers
	States    int   // rows of the state; 0: Batch
	StateRows Items // distinct rows; zero: item b uses row b
	Exact     bool  // no rounded operands, in a Fast recording too
}

// Name implements Op.
func (LSTM) Name() string { return "lstm" }

func (l LSTM) describe(c *checker) Op {
	w := param[LSTMShape](c, "W", l.W)
	l.Batch = c.batch(l.Batch)
	c.atLeast("Time", l.Time, 0)
	c.atLeast("States", l.States, 0)
	if l.States == 0 {
		l.States = l.Batch
	}
	if l.StateRows.IsZero() && l.States < l.Batch {
		c.failf("States: want at least one row for each of %d items, given %d", l.Batch, l.States)
	}
	if l.H0.IsZero() != l.C0.IsZero() || l.H.IsZero() != l.C.IsZero() {
		c.failf("H0, C0, H, C: want h and c, or neither")
	}
	l.Lengths.check(c, "Lengths", l.Batch, l.Time, false)
	l.StateRows.check(c, "StateRows", l.Batch, l.States-1, true)
	l.X = c.read("X", F32, l.X, l.Batch, l.Time, w.In)
	l.Y = c.write("Y", F32, l.Y, l.Batch, l.Time, w.Directions*w.Hidden)
	state := func(name string, v View, write bool) View {
		switch {
		case v.IsZero():
			return v
		case write:
			return c.write(name, F32, v, l.States, w.States(), w.Hidden)
		}
		return c.read(name, F32, v, l.States, w.States(), w.Hidden)
	}
	l.H0, l.C0 = state("H0", l.H0, false), state("C0", l.C0, false)
	l.H, l.C = state("H", l.H, true), state("C", l.C, true)
	c.mayShare("H0", "H")
	c.mayShare("C0", "C")
	products, in := 0.0, w.In
	for range w.Layers {
		products += float64(w.Directions) * 4 * float64(w.Hidden) * float64(in+w.Hidden)
		in = w.Directions * w.Hidden
	}
	c.done(2*float64(l.Batch)*float64(l.Time)*products, 4*int64(products))
	return l
}

// Cuts implements Op. Time is not cut here: a backend takes as many steps at once as
// it likes, since the state carries over.
func (l LSTM) Cuts() []Cut { return []Cut{{AxisBatch, l.Batch, 1}} }

func (l LSTM) part(_ Axis, from, to int) Op {
	if l.StateRows.IsZero() {
		move := func(v View) View {
			if v.IsZero() {
				return v
			}
			return v.item(from)
		}
		l.H0, l.C0, l.H, l.C = move(l.H0), move(l.C0), move(l.H), move(l.C)
		l.States = to - from
	}
	l.StateRows = l.StateRows.part(from, to)
	l.X, l.Y, l.Batch = l.X.item(from), l.Y.item(from), to-from
	l.Lengths = l.Lengths.part(from, to)
	return l
}
