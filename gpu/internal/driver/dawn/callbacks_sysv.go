//go:build (linux || darwin) && (amd64 || arm64) && !android && !ios

package dawn

import "github.com/ebitengine/purego"

// makeCallbacks makes the functions that the library calls. Strings arrive as two
// words.
func makeCallbacks() callbacks {
	return callbacks{
		object: purego.NewCallback(func(status uint32, object handle, data *byte, length, id, _ uintptr) uintptr {
			finish(id, outcome{status: status, object: object, message: copyText(data, length)})
			return 0
		}),
		scope: purego.NewCallback(func(status, kind uint32, data *byte, length, id, _ uintptr) uintptr {
			finish(id, outcome{status: status, kind: kind, message: copyText(data, length)})
			return 0
		}),
		status: purego.NewCallback(func(status uint32, data *byte, length, id, _ uintptr) uintptr {
			finish(id, outcome{status: status, message: copyText(data, length)})
			return 0
		}),
		done: purego.NewCallback(func(status uint32, _ *byte, _, id, serial uintptr) uintptr {
			onDone(id, uint64(serial))
			return 0
		}),
		uncaptured: purego.NewCallback(func(_ uintptr, kind uint32, data *byte, length, id, _ uintptr) uintptr {
			onUncaptured(id, kind, copyText(data, length))
			return 0
		}),
		lost: purego.NewCallback(func(_ uintptr, reason uint32, data *byte, length, id, _ uintptr) uintptr {
			onLost(id, reason, copyText(data, length))
			return 0
		}),
		load:  purego.NewCallback(onLoad),
		store: purego.NewCallback(onStore),
	}
}
