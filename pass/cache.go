package pass

// Append stores rows of keys and values in a cache, row r of item b at position
// At + r. A run whose index leads beyond the capacity fails.
type Append struct {
	K, V  View // [Batch][Rows][heads·head dimension] of the cache
	Cache Cache
	Batch int   // 0: one item; at most the cache's
	Rows  int   // 0: nothing is done
	At    Index // position of the first row
}

// Name implements Op.
func (Append) Name() string { return "append" }

func (a Append) describe(c *checker) Op {
	a.Batch = c.batch(a.Batch)
	c.atLeast("Rows", a.Rows, 0)
	g := c.cache("Cache", a.Cache, Update, a.Batch)
	a.At.check(c, "At", a.Batch)
	a.At.within(c, "At", a.Rows, g.Capacity)
	a.K = c.read("K", F32, a.K, a.Batch, a.Rows, g.Heads*g.HeadDim)
	a.V = c.read("V", F32, a.V, a.Batch, a.Rows, g.Heads*g.HeadDim)
	c.done(0, 0)
	c.cost.Bytes *= 2
	return a
}

// Cuts implements Op. Items are not cut, because a part would not know which items of
// the cache are its own.
func (a Append) Cuts() []Cut { return []Cut{{AxisRows, a.Rows, 1}} }

func (a Append) part(_ Axis, from, to int) Op {
	a.K, a.V, a.Rows, a.At = a.K.row(from), a.V.row(from), to-from, a.At.Plus(from)
	return a
}

// Attend is [Attention] of queries over the first Keys positions of a cache. With
// Causal, query i sees the positions up to i + Keys − Queries: many queries at once are
// the prefill of a decoder. A run whose index leads beyond the capacity fails.
type Attend struct {
	Q, O    View // [Batch][Queries][heads·head dimension] of the cache
	Cache   Cache
	Batch   int     // 0: one item; at most the cache's
	Queries int     // 0: nothing is done
	Keys    Index   // positions in use; 0: O is zero
	Causal  bool    // only positions up to the query's own
	Scale   float32 // 0: 1/sqrt(head dimension)
	Exact   bool    // no rounded operands, in a Fast recording too
}

// Name implements Op.
func (Attend) Name() string { return "attend" }

func (a Attend) describe(c *checker) Op {
	a.Batch = c.batch(a.Batch)
	c.atLeast("Queries", a.Queries, 0)
	g := c.cache("Cache", a.Cache, Read, a.Batch)
	a.Scale = c.scale(a.Scale, g.HeadDim)
	a.Keys.check(c, "Keys", a.Batch)
	a.Keys.within(c, "Keys", 0, g.Capacity)
	a.Q = c.read("Q", F32, a.Q, a.Batch, a.Queries, g.Heads*g.HeadDim)
	a.O = c.write("O", F32, a.O, a.Batch, a.Queries, g.Heads*g.HeadDim)
	keys, ok := a.Keys.Const()
	if !ok {
		keys = g.Capacity
	}
	width := float64(g.Heads * g.HeadDim)
	c.done(4*float64(a.Batch)*float64(a.Queries)*float64(keys)*width, 0)
	c.cost.Bytes += 2 * float64(g.Type.Bytes(1)) * float64(a.Batch) * float64(keys) * width
	return a
}

// Cuts implements Op; see [Append].
func (a Attend) Cuts() []Cut { return nil }

func (a Attend) part(Axis, int, int) Op { return a }
