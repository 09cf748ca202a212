package drivertest

import "syscall"

// thread names the thread of the caller.
func thread() int { return syscall.Gettid() }
