//go:build !race

package ge2e

const raced = false
