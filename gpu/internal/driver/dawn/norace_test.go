//go:build !race

package dawn

const underRace = false
