package passtest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

func FuzzRecordings(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		dev, err := cpu.Open(cpu.Config{})
		require.NoError(t, err)
		toy := newToy("")
		defer toy.Close()
		defer dev.Close()
		Fuzz(t, seed, dev, toy)
	})
}
