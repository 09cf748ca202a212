package cases_test

import (
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A case folder is read, computed in float64, and compared.
func Example() {
	c, err := cases.ReadDir("testdata/by-hand")
	if err != nil {
		log.Fatal(err)
	}
	truth, err := c.Truth()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Name, truth[0].Name, truth[0].Shape, truth[0].Float32s())
	report := cases.Compare(truth[0], c.Wanted[0], c.Limits())
	fmt.Println(report.Err(c.Limits()))
	// Output:
	// by-hand C [1 2 2] [-1 2.5 -1 5.5]
	// <nil>
}
