//go:build (linux || darwin) && (amd64 || arm64) && !android && !ios

package dawn

import (
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// quiet is the C library's variable of its standard error stream, and a stream that
// goes nowhere.
var quiet struct {
	sync.Mutex
	once    sync.Once
	stream  *uintptr
	nowhere uintptr
}

// quietly runs f, which makes the library look for adapters, without what C code then
// prints to standard error: the library itself about limits that it lowers, and Mesa's
// device-select layer where there is no desktop session. The library can be told
// neither otherwise. Only the C library's own stream is exchanged; what Go writes is
// not touched.
func quietly(debug bool, f func()) {
	if debug {
		f()
		return
	}
	quiet.Lock()
	defer quiet.Unlock()
	quiet.once.Do(openNowhere)
	if quiet.stream != nil {
		stderr := *quiet.stream
		*quiet.stream = quiet.nowhere
		defer func() { *quiet.stream = stderr }()
	}
	const off = "NODEVICE_SELECT"
	_, session := os.LookupEnv("XDG_RUNTIME_DIR")
	_, set := os.LookupEnv(off)
	if runtime.GOOS == "linux" && !session && !set && os.Setenv(off, "1") == nil {
		defer os.Unsetenv(off)
	}
	f()
}

func openNowhere() {
	name := "stderr"
	if runtime.GOOS == "darwin" {
		name = "__stderrp"
	}
	stream, err := purego.Dlsym(purego.RTLD_DEFAULT, name)
	if err != nil || stream == 0 {
		return
	}
	open, err := purego.Dlsym(purego.RTLD_DEFAULT, "fopen")
	if err != nil || open == 0 {
		return
	}
	path, mode := []byte("/dev/null\x00"), []byte("w\x00")
	quiet.nowhere, _, _ = purego.SyscallN(open, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&mode[0])))
	if quiet.nowhere != 0 {
		quiet.stream = (*uintptr)(pointer(stream))
	}
}
