package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDivisors(t *testing.T) {
	t.Parallel()
	var numbers []uint32
	for bit := range 31 {
		for d := range uint32(5) {
			numbers = append(numbers, 1<<bit+d-2)
		}
	}
	numbers = append(numbers, 0, 80, 1000, 51865, 1<<31-1, 3*5*7*11*13*17*19)
	for _, by := range append(numbers, 1<<31, 1<<31+1, 1<<32-1) {
		if by == 0 {
			continue
		}
		d := DivisorOf(by)
		for _, n := range numbers {
			for _, n := range []uint32{n, n / by * by, n/by*by + by - 1} {
				if n < 1<<31 {
					require.Equal(t, n/by, uint32(uint64(n)*uint64(d.Factor)>>d.Shift), "%d/%d", n, by)
				}
			}
		}
	}
}
