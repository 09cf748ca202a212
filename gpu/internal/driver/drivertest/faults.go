package drivertest

import "time"

// Faults says how a device in memory fails. Counts are from 1 since New or the last
// Inject; zero is never.
type Faults struct {
	LoseAtSubmit int           // this Submit fails and the device is lost
	LoseAtFinish int           // this submission is accepted; the device is lost in place of its end
	FailSubmit   int           // this Submit fails with pass.ErrInvalid; the device stays usable
	SkipDispatch int           // this dispatch does nothing, and its submission is reported finished
	SkipPipeline string        // no dispatch of the pipeline with this label does anything
	Hang         int           // this submission, and so every later one, never finishes
	LateError    int           // once this submission is finished Err reports an error
	FailAlloc    int           // this CreateBuffer fails with pass.ErrOutOfMemory
	Delay        time.Duration // how long each submission takes
}

type faultState struct {
	Faults
	submits, dispatches, allocs int
}

// hit counts an event and reports whether it is the one that fails.
func (f *faultState) hit(count *int, at int) bool {
	*count++
	return *count == at
}

// Inject replaces the faults and starts counting anew. Submissions that hang already
// stay so; see Resume.
func (d *Device) Inject(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = faultState{Faults: f}
}

// Resume lets submissions that hang finish.
func (d *Device) Resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.pending {
		w.hang = false
	}
}

// Lose makes the device lost, as a driver reset would.
func (d *Device) Lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose("injected")
}
