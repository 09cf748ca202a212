//go:build windows && amd64

package dawn

import "github.com/ebitengine/purego"

// makeCallbacks makes the functions that the library calls. Strings arrive as the
// address of a copy.
func makeCallbacks() callbacks {
	return callbacks{
		object: purego.NewCallback(func(status uint32, object handle, message *text, id, _ uintptr) uintptr {
			finish(id, outcome{status: status, object: object, message: message.String()})
			return 0
		}),
		scope: purego.NewCallback(func(status, kind uint32, message *text, id, _ uintptr) uintptr {
			finish(id, outcome{status: status, kind: kind, message: message.String()})
			return 0
		}),
		status: purego.NewCallback(func(status uint32, message *text, id, _ uintptr) uintptr {
			finish(id, outcome{status: status, message: message.String()})
			return 0
		}),
		done: purego.NewCallback(func(_ uint32, _ *text, id, serial uintptr) uintptr {
			onDone(id, uint64(serial))
			return 0
		}),
		uncaptured: purego.NewCallback(func(_ uintptr, kind uint32, message *text, id, _ uintptr) uintptr {
			onUncaptured(id, kind, message.String())
			return 0
		}),
		lost: purego.NewCallback(func(_ uintptr, reason uint32, message *text, id, _ uintptr) uintptr {
			onLost(id, reason, message.String())
			return 0
		}),
		load:  purego.NewCallback(onLoad),
		store: purego.NewCallback(onStore),
	}
}
