package pass

import (
	"errors"
	"fmt"
)

// The sentinels. Every error of a backend, a session or a model wraps one of them;
// test with [errors.Is].
var (
	// ErrNoDevice: there is no device of the kind that was asked for. The message
	// names each candidate and why it was declined.
	ErrNoDevice = errors.New("no device")
	// ErrDeviceLost: the device stopped working. It is sticky: every later call on
	// the device, its sessions and recordings returns it.
	ErrDeviceLost = errors.New("device lost")
	// ErrOutOfMemory: an allocation failed. The device stays usable.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrInvalid: the call or its data are wrong. The message names the op, the
	// argument, what was wanted and what was given.
	ErrInvalid = errors.New("invalid")
	// ErrUnsupported: this kernel or backend declines. Inside a backend it is the only
	// error that lets it try its next variant.
	ErrUnsupported = errors.New("unsupported")
	// ErrClosed: the device, session, recording, buffer or param was closed before.
	ErrClosed = errors.New("closed")
	// ErrTimeout: work did not finish in the time it was given.
	ErrTimeout = errors.New("timeout")
)

var errNoRun = fmt.Errorf("pass: run: not started: %w", ErrInvalid)
