//go:build (linux || darwin) && amd64 && !android && !ios

package dawn

import "unsafe"

// starting appends the arguments of a function of count words, at most four, and a
// callback info. On System V a structure of that size travels on the stack, behind the
// six registers.
func starting(args []uintptr, info *callbackInfo, _ int, a, b, c, d uintptr) []uintptr {
	return append(args, a, b, c, d, 0, 0,
		uintptr(info.next), uintptr(info.mode), info.callback, info.userdata1, info.userdata2)
}

// callWith calls a function whose one argument is a structure of more than two words,
// of size bytes. On System V it travels on the stack.
func (l *library) callWith(f function, structure unsafe.Pointer, size uintptr) {
	words := make([]uintptr, 6, 6+size/8)
	words = append(words, unsafe.Slice((*uintptr)(structure), size/8)...)
	l.call(f, words...)
}
