package main

import (
	"runtime"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
)

// A readyJob is the data of an op, with what its results are held against.
type readyJob struct {
	job *kernel.Job
	err error
}

// ahead is how many ops may be ready before they are measured: their data take memory.
const ahead = 4

// readied makes the data of ops, in their order, on cores that would be idle while the
// device works. A channel brings each; stop ends it.
func readied(all []work) (jobs []chan readyJob, stop func()) {
	jobs = make([]chan readyJob, len(all))
	for i := range jobs {
		jobs[i] = make(chan readyJob)
	}
	next, done := make(chan int), make(chan struct{})
	go func() {
		defer close(next)
		for i := range all {
			select {
			case next <- i:
			case <-done:
				return
			}
		}
	}()
	for range max(min(runtime.GOMAXPROCS(0)-1, ahead), 1) {
		go func() {
			for i := range next {
				var r readyJob
				if r.job, r.err = all[i].Job(); r.err == nil {
					r.err = r.job.Foresee()
				}
				select {
				case jobs[i] <- r:
				case <-done:
					return
				}
			}
		}()
	}
	return jobs, func() { close(done) }
}
