//go:build ((linux || darwin) && arm64 && !android && !ios) || (windows && amd64)

package dawn

import "unsafe"

// starting appends the arguments of a function of count words, at most four, and a
// callback info. Here a structure of that size travels as the address of a copy, which
// the caller keeps alive.
func starting(args []uintptr, info *callbackInfo, count int, a, b, c, d uintptr) []uintptr {
	words := [4]uintptr{a, b, c, d}
	return append(append(args, words[:count]...), uintptr(unsafe.Pointer(info)))
}

// callWith calls a function whose one argument is a structure of more than two words.
func (l *library) callWith(f function, structure unsafe.Pointer, _ uintptr) {
	l.call(f, uintptr(structure))
}
