package silero

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// Streams of all clips begin, pause, end and are followed by others in the same row, and
// each gets the probabilities that it gets alone.
func TestStreams(t *testing.T) {
	t.Parallel()
	onDevices(t, func(t *testing.T, model *Model) {
		ctx := context.Background()
		const capacity, total = 256, 300
		rng := rand.New(rand.NewPCG(5, 6))
		s, err := model.NewStreams(ctx, capacity)
		require.NoError(t, err)
		defer s.Close()
		type player struct {
			id   StreamID
			rest []float32
			want []float32
		}
		var playing []*player
		begun, busiest := 0, 0
		rows := map[uint32]int{}
		begin := func() {
			name := names[begun%len(names)]
			p := &player{rest: samples(t, name), want: reference(t, name).Probabilities}
			if begun >= len(names) { // the first play to their end
				n := 1 + rng.IntN(5)
				p.rest, p.want = p.rest[:n*512], p.want[:n]
			}
			var err error
			p.id, err = s.Add()
			require.NoError(t, err)
			rows[p.id.row()]++
			playing = append(playing, p)
			begun++
		}
		for range capacity {
			begin()
		}
		_, err = s.Add()
		require.ErrorIs(t, err, pass.ErrInvalid)
		for len(playing) > 0 {
			for begun < total && s.Len() < capacity && rng.IntN(2) == 0 {
				begin()
			}
			var chunks []Chunk
			var of []*player
			for _, p := range playing {
				if rng.IntN(5) > 0 {
					chunks = append(chunks, Chunk{Stream: p.id, Samples: p.rest[:min(len(p.rest), 512)]})
					of = append(of, p)
				}
			}
			rng.Shuffle(len(of), func(i, j int) {
				chunks[i], chunks[j] = chunks[j], chunks[i]
				of[i], of[j] = of[j], of[i]
			})
			require.NoError(t, s.Step(ctx, chunks))
			busiest = max(busiest, len(chunks))
			for i, p := range of {
				require.InDelta(t, p.want[0], chunks[i].Probability, tolerance)
				p.want = p.want[1:]
				p.rest = p.rest[len(chunks[i].Samples):]
			}
			still := playing[:0]
			for _, p := range playing {
				if len(p.want) > 0 {
					still = append(still, p)
					continue
				}
				require.NoError(t, s.Remove(p.id))
				require.ErrorIs(t, s.Remove(p.id), pass.ErrClosed)
			}
			playing = still
		}
		require.Equal(t, total, begun)
		require.Greater(t, busiest, 64, "the largest recording has run")
		require.Len(t, rows, capacity)
		require.Zero(t, s.Len())
	})
}

func TestStreamsRefuse(t *testing.T) {
	t.Parallel()
	onDevices(t, func(t *testing.T, model *Model) {
		ctx := context.Background()
		for _, n := range []int{-1, 0, maxStreams + 1} {
			_, err := model.NewStreams(ctx, n)
			require.ErrorIs(t, err, pass.ErrInvalid)
		}
		s, err := model.NewStreams(ctx, 3)
		require.NoError(t, err)
		defer s.Close()
		require.Equal(t, 3, s.Capacity())
		a, err := s.Add()
		require.NoError(t, err)
		gone, err := s.Add()
		require.NoError(t, err)
		require.NoError(t, s.Remove(gone))
		b, err := s.Add()
		require.NoError(t, err)
		require.NotEqual(t, gone, b)
		require.Equal(t, 2, s.Len())

		clip := samples(t, "jfk")
		good := Chunk{Stream: a, Samples: clip[:512]}
		for name, tc := range map[string]struct {
			bad  Chunk
			want error
			text string
		}{
			"removed":  {Chunk{Stream: gone, Samples: clip[:512]}, pass.ErrClosed, "no stream 1.1, or removed"},
			"unknown":  {Chunk{Stream: 99, Samples: clip[:512]}, pass.ErrClosed, "no stream 99.0"},
			"twice":    {good, pass.ErrInvalid, "want one chunk of a stream, given another"},
			"empty":    {Chunk{Stream: b}, pass.ErrInvalid, "want 1 to 512 samples, given 0"},
			"too long": {Chunk{Stream: b, Samples: clip[:513]}, pass.ErrInvalid, "want 1 to 512 samples, given 513"},
			"infinite": {Chunk{Stream: b, Samples: []float32{0, 0, float32(math.Inf(1))}}, pass.ErrInvalid, "sample 2: want a finite value"},
		} {
			err := s.Step(ctx, []Chunk{good, tc.bad})
			require.ErrorIs(t, err, tc.want, name)
			require.ErrorContains(t, err, tc.text, name)
			require.ErrorContains(t, err, "chunk 1", name)
		}
		require.NoError(t, s.Step(ctx, nil))

		// Nothing was taken of what was refused; what is cancelled must be reset.
		want := reference(t, "jfk").Probabilities
		step := func(ctx context.Context, id StreamID, i int) (float32, error) {
			c := []Chunk{{Stream: id, Samples: clip[512*i : 512*(i+1)]}}
			err := s.Step(ctx, c)
			return c[0].Probability, err
		}
		expect := func(id StreamID, i int) {
			p, err := step(ctx, id, i)
			require.NoError(t, err)
			require.InDelta(t, want[i], p, tolerance, "chunk %d", i)
		}
		expect(a, 0)
		expect(b, 0)
		expect(a, 1)
		ended, end := context.WithCancel(ctx)
		end()
		_, err = step(ended, a, 2)
		require.ErrorIs(t, err, context.Canceled)
		_, err = step(ctx, a, 2)
		require.ErrorContains(t, err, "not Reset since")
		expect(b, 1)
		require.NoError(t, s.Reset(a))
		for i := range 4 {
			expect(a, i)
		}
		expect(b, 2)
		require.ErrorIs(t, s.Reset(gone), pass.ErrClosed)
	})
}
