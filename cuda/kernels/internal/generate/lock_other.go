//go:build !unix

package main

func lock(string) (unlock func(), err error) { return func() {}, nil }
