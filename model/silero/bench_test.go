package silero

import (
	"context"
	"testing"
	"time"

	"github.com/tandem-gpu/tandem/pass/cpu"
)

// perChunk reports the time of a chunk, and how many times faster than real time that is.
func perChunk(b *testing.B, chunks int) {
	each := b.Elapsed().Seconds() / float64(chunks)
	b.ReportMetric(each*1e6, "us/chunk")
	b.ReportMetric(chunkDuration.Seconds()/each, "x-real-time")
	b.ReportMetric(0, "ns/op")
}

func benchModel(b *testing.B, threads int) *Model {
	dev, err := cpu.Open(cpu.Config{Threads: threads})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dev.Close() })
	return load(b, dev)
}

// A chunk at a time, as live audio comes, on one core.
func BenchmarkStream(b *testing.B) {
	ctx := context.Background()
	s, err := benchModel(b, 1).NewStream(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	clip := samples(b, "jfk")
	b.ReportAllocs()
	steps := 0
	for b.Loop() {
		at := steps % (len(clip)/ChunkSamples - 1) * ChunkSamples
		if _, err := s.Feed(ctx, clip[at:at+ChunkSamples]); err != nil {
			b.Fatal(err)
		}
		steps++
	}
	perChunk(b, steps)
}

// Whole recordings of 11 seconds, on one core and on all.
func BenchmarkProbabilities(b *testing.B) {
	for name, threads := range map[string]int{"one": 1, "all": 0} {
		b.Run(name, func(b *testing.B) {
			model := benchModel(b, threads)
			clip := samples(b, "jfk")
			runs := 0
			for b.Loop() {
				if _, err := model.Probabilities(context.Background(), clip); err != nil {
					b.Fatal(err)
				}
				runs++
			}
			perChunk(b, runs*Chunks(len(clip)))
		})
	}
}

// 256 live streams, a chunk of each in a step, on all cores.
func BenchmarkStreams256(b *testing.B) {
	ctx := context.Background()
	s, err := benchModel(b, 0).NewStreams(ctx, 256)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	clip := samples(b, "jfk")
	chunks := make([]Chunk, s.Capacity())
	for i := range chunks {
		id, err := s.Add()
		if err != nil {
			b.Fatal(err)
		}
		chunks[i] = Chunk{Stream: id, Samples: clip[i*ChunkSamples/2:][:ChunkSamples]}
	}
	b.ReportAllocs()
	steps := 0
	for b.Loop() {
		if err := s.Step(ctx, chunks); err != nil {
			b.Fatal(err)
		}
		steps++
	}
	perChunk(b, steps*len(chunks))
	b.ReportMetric(float64(b.Elapsed())/float64(steps)/float64(time.Millisecond), "ms/step")
}
