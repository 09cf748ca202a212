package emulate

import "github.com/ebitengine/purego"

func load(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbol(library uintptr, name string) (uintptr, error) { return purego.Dlsym(library, name) }

func bind(function any, at uintptr) { purego.RegisterFunc(function, at) }
