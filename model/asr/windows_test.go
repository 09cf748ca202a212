package asr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/ctc"
	"github.com/tandem-gpu/tandem/pass"
)

// Windows cover a clip, overlap as asked, and none lies within another.
func TestWindows(t *testing.T) {
	t.Parallel()
	require.Empty(t, split(0, 0, 10, 4))
	for n := 1; n < 60; n++ {
		all := split(3, n, 10, 4)
		require.Zero(t, all[0].from)
		require.Equal(t, n, all[len(all)-1].to)
		for i, w := range all {
			require.Equal(t, 3, w.clip)
			require.LessOrEqual(t, w.to-w.from, 10)
			if i > 0 {
				require.Equal(t, 6, w.from-all[i-1].from)
				require.Greater(t, w.to, all[i-1].to, "%d samples", n)
				require.Equal(t, 10, all[i-1].to-all[i-1].from)
			}
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	at := func(frames ...int) (all []Token) {
		for _, f := range frames {
			all = append(all, Token{Frame: f})
		}
		return all
	}
	for _, c := range []struct {
		a, b     []Token
		from, to int
		want     int
	}{
		{nil, nil, 100, 120, 110},
		{at(103, 109, 110, 118), at(109, 110, 118), 100, 120, 114}, // in the pause between 110 and 118
		{at(112, 113), at(106, 113), 100, 120, 110},                // what either has counts
		{at(110), at(110), 100, 120, 105},                          // the ends of the middle half, and no farther
		{at(110), nil, 110, 110, 110},
	} {
		require.Equal(t, c.want, cut(c.a, c.b, c.from, c.to), "%v %v", c.a, c.b)
	}
}

// Tokens near a seam are neither lost nor there twice, though one window has them a frame
// later than the other.
func TestJoin(t *testing.T) {
	t.Parallel()
	const frame = 10
	all := []window{
		{from: 0, to: 100, tokens: []Token{{1, 2, 1}, {2, 6, 1}, {3, 9, 1}}},
		{from: 60, to: 160, tokens: []Token{{2, 1, 1}, {4, 3, 1}, {5, 6, 1}}},
		{from: 120, to: 170, tokens: []Token{{5, 0, 1}, {6, 4, 1}}},
	}
	require.Equal(t, []Token{{1, 2, 1}, {2, 6, 1}, {4, 9, 1}, {5, 12, 1}, {6, 16, 1}}, join(all, frame))
	require.Empty(t, join(nil, frame))
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	const window = 480000
	last := -1
	for i := range shares {
		n := filled(i, window)
		require.Greater(t, n, last)
		require.Equal(t, i, bucket(n, window))
		if i > 0 {
			require.Equal(t, i, bucket(last+1, window))
		}
		last = n
	}
	require.Equal(t, window, last)
	require.Zero(t, bucket(1, window))
}

func TestConfig(t *testing.T) {
	t.Parallel()
	net := Network{Device: &nothing{}, Encoder: &bins{}, CTC: &ctc.Head{}, FrameSamples: 640}
	c, window, overlap, err := SessionConfig{}.check(net)
	require.NoError(t, err)
	require.Equal(t, CTCHead, c.Head)
	require.Equal(t, 8, c.Batch)
	require.Equal(t, 30*SampleRate, window)
	require.Equal(t, 4*SampleRate, overlap)
	_, window, overlap, err = SessionConfig{Window: 1999 * time.Millisecond, Overlap: 990 * time.Millisecond}.check(net)
	require.NoError(t, err)
	require.Zero(t, window%640+overlap%640)
	require.InDelta(t, 1.999*SampleRate, window, 640)
	for _, c := range []SessionConfig{
		{Head: TransducerHead}, {Head: 9}, {Batch: -1}, {Batch: 2000}, {Window: time.Millisecond},
		{Window: 10 * time.Second, Overlap: 5 * time.Second}, {Window: 10 * time.Second, Overlap: -1}, {Window: 1000 * time.Hour},
	} {
		_, _, _, err := c.check(net)
		require.ErrorIs(t, err, pass.ErrInvalid, "%+v", c)
	}
	for _, change := range []func(*Network){
		func(n *Network) { n.Device = nil }, func(n *Network) { n.Encoder = nil }, func(n *Network) { n.CTC = nil }, func(n *Network) { n.FrameSamples = 0 },
	} {
		bad := net
		change(&bad)
		_, _, _, err := SessionConfig{}.check(bad)
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
}

type nothing struct{ pass.Device }
