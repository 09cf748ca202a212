//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"os"
	"runtime"
)

// quietly calls create without Mesa's device-select layer where that layer would only
// complain: without XDG_RUNTIME_DIR, on servers and in containers, it prints to standard
// error for every adapter. Adapters are chosen by us, so it is not missed. The variable
// that turns it off is read while an instance is made, and is set for no longer.
func quietly(create func()) {
	const off = "NODEVICE_SELECT"
	_, session := os.LookupEnv("XDG_RUNTIME_DIR")
	_, set := os.LookupEnv(off)
	if runtime.GOOS == "linux" && !session && !set && os.Setenv(off, "1") == nil {
		defer os.Unsetenv(off)
	}
	create()
}
