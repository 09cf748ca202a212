//go:build !linux

package emulate

import "errors"

func load(string) (uintptr, error) { return 0, errors.New("the emulator runs on Linux") }

func symbol(uintptr, string) (uintptr, error) { return 0, errors.ErrUnsupported }

func bind(any, uintptr) {}
