package passtest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// ok ends the test on an error.
func ok(t testing.TB, err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// fails requires an error of a sentinel whose message names things.
func fails(t testing.TB, what string, err, sentinel error, names ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: want an error that is %q, given none", what, sentinel)
		return
	}
	if !errors.Is(err, sentinel) {
		t.Errorf("%s: want an error that is %q, given: %v", what, sentinel, err)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: want a message with %q, given: %v", what, name, err)
		}
	}
}

// same requires equal values.
func same[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// within fails the test if f has not returned after a generous time, instead of hanging
// until the whole run is killed.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Minute):
		t.Fatalf("%s: did not return within ten minutes", what)
	}
}
