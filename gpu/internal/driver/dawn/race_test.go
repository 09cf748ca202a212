//go:build race

package dawn

// underRace: what the race detector holds grows by itself.
const underRace = true
