// Package driver is the seam between the gpu backend and whatever speaks WebGPU on
// this machine. A [Provider] lists adapters and opens one as a [Device]; a Device owns
// buffers, pipelines and bind groups, runs flat command lists and reports what
// finished. Everything is named by an integer, so that a provider may live behind cgo,
// behind a library loaded at run time or behind the browser's objects.
//
// The package holds no policy. It does not choose adapters, plan memory, split work
// or decide how long to wait: the gpu package does. In return a provider promises, for
// every call and every argument, a value or an error: never a panic, never an abort of
// the process, never a wait without a bound.
//
// # Order
//
// Commands of one Submit run in order, and submissions run in the order in which they
// were made; a command sees what all earlier ones wrote. A Write takes effect with the
// next Submit, before its first command. A mapped read or write waits until the
// submissions made before it are through with the buffer.
//
// # Concurrency
//
// A Device may be used by any number of goroutines. An error belongs to the call that
// returned it. No lock is held while a call waits.
//
// # Errors
//
// Errors wrap the sentinels of package pass: ErrInvalid for an argument that the device
// would refuse, ErrUnsupported for a limit or a feature it does not have, ErrOutOfMemory
// with the device still usable, ErrDeviceLost once the device is gone, ErrTimeout for a
// bound that passed, ErrClosed after Close, ErrNoDevice where there is nothing to open;
// or [ErrBusy].
package driver
