package dawn

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tandem-gpu/tandem/pass"
)

// sentinelFor sorts an error of the library by its type and its words.
func sentinelFor(kind uint32, message string) error {
	low := strings.ToLower(message)
	switch {
	case strings.Contains(low, "] is lost"), strings.Contains(low, "device is lost"), strings.Contains(low, "device was lost"), strings.Contains(low, "device_lost"):
		return pass.ErrDeviceLost
	case kind == errorOutOfMemory, strings.Contains(low, "out of memory"), strings.Contains(low, "out_of_memory"),
		strings.Contains(low, "out_of_device_memory"), strings.Contains(low, "out_of_host_memory"):
		return pass.ErrOutOfMemory
	}
	return pass.ErrInvalid
}

// oneLine joins a report of several indented lines, which may quote a kernel.
func oneLine(message string) string {
	var parts []string
	message = strings.ToValidUTF8(message, "?")
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

func orUnknown(reason string) string {
	if reason == "" {
		return "the library gave no reason"
	}
	return reason
}

// lateErrors is what the library reports outside of any call's own answer. Its
// callbacks may run on threads of the library, at any time.
type lateErrors struct {
	mu     sync.Mutex
	name   string // of the device
	lost   error
	first  error // since the last take
	sticky error // the first that no call took
}

func (l *lateErrors) add(kind uint32, message string) {
	message = orUnknown(oneLine(message))
	sentinel := l.sort(kind, message)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = fmt.Errorf("%s: %w", message, sentinel)
	}
}

// sort is sentinelFor. An error that the loss of the device explains is one.
func (l *lateErrors) sort(kind uint32, message string) error {
	sentinel := sentinelFor(kind, message)
	if sentinel == pass.ErrDeviceLost {
		l.lose(message)
	}
	return sentinel
}

func (l *lateErrors) lose(message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.lost = fmt.Errorf("dawn: %s: %s: %w", l.name, orUnknown(oneLine(message)), pass.ErrDeviceLost)
	}
}

// take returns what came since the last call, which has just returned: it is about
// that call.
func (l *lateErrors) take() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.first
	l.first = nil
	return err
}

// keep makes what came while no call was running the device's own error.
func (l *lateErrors) keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first != nil && l.sticky == nil {
		l.sticky = fmt.Errorf("dawn: %s: %w", l.name, l.first)
	}
	l.first = nil
}

// loss is why the device is gone, or nil.
func (l *lateErrors) loss() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// failure is the loss, or the first error that no call returned, or nil.
func (l *lateErrors) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	if l.sticky == nil && l.first != nil {
		return fmt.Errorf("dawn: %s: %w", l.name, l.first)
	}
	return l.sticky
}
