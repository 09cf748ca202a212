// Package pass is tandem's vocabulary: what a network is made of, and the contract
// that every backend fulfils. It imports no backend.
//
// A [Device] loads weights ([Param]) and opens sessions. A [Session] is an ordered
// queue with its own state. [Session.Record] runs a callback once, which describes
// the work by handing op values to a [Pass]; what comes back is a compiled
// [Recording] that is started as often as wanted, each time with fresh inputs:
//
//	var in pass.Input
//	var out pass.Output
//	rec, err := session.Record(ctx, pass.RecordOptions{Label: "head"}, func(p pass.Pass) {
//		in = p.Input(pass.F32, 128)
//		y := p.Temp(pass.F32, 10)
//		p.Do(pass.Gemm{A: in.View(), W: w, C: y.View(), Rows: 1, Epilogue: pass.Sigmoid})
//		out = p.Output(y.View(), 10)
//	})
//	run, err := rec.Run(ctx, in.F32(samples))
//	err = run.ReadF32(out, result)
//
// # Ops are values
//
// The set of ops is closed. Each op knows its check, its cost, the views it reads
// and writes and the axes along which it may be cut; aliasing checks, lifetimes of
// temporaries, splitting and dumps are derived from those, once for all backends.
//
// # Shapes
//
// Everything is row-major with channels last: sequences are [batch][time][channel].
// A [View] names where an argument lies: buffer, first element, row stride and batch
// stride, all in elements. Elements outside of a view are neither read nor written.
//
// # Errors
//
// Errors are values that wrap one of the sentinels of this package. A mistake inside
// a recording callback sticks and comes out of Record, once. No call panics.
//
// # Concurrency
//
// A Device and its Params may be used from any goroutine. One goroutine at a time
// drives a Session, its buffers and its recordings; different sessions are
// independent of each other.
package pass
