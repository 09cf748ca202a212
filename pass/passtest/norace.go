//go:build !race

package passtest

const raceEnabled = false
