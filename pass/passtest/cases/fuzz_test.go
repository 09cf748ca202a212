package cases

import (
	"os"
	"path/filepath"
	"testing"
)

// Whatever case.json says about tensors that are there, reading ends with a case whose
// outputs are known, or with an error.
func FuzzReadDir(f *testing.F) {
	found, err := FindDirs("testdata")
	if err != nil {
		f.Fatal(err)
	}
	var tensors [][]byte
	for i, dir := range found {
		text, err := os.ReadFile(filepath.Join(dir, caseFile))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(i))
		data, err := os.ReadFile(filepath.Join(dir, tensorFile))
		if err != nil {
			f.Fatal(err)
		}
		tensors = append(tensors, data)
	}
	for _, text := range []string{
		`{"op":"copy","fields":{"Rows":1,"Batch":99999999,"Cols":0}}`,
		`{"op":"fill","fields":{"Rows":1000000,"Cols":1000000}}`,
		`{"op":"conv1d","fields":{"PadLeft":1000000000000,"Stride":3}}`,
		`{"op":"lstm","fields":{"States":1,"StateRows":[0,0]}}`,
	} {
		f.Add([]byte(text), uint8(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, which uint8) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, caseFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, tensorFile), tensors[int(which)%len(tensors)], 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ReadDir(dir)
		if err != nil {
			return
		}
		if volumeOf(c) > 1<<16 {
			return // right, but slow
		}
		for _, l := range Layouts() {
			if _, err := Place(c, l, 1); err != nil {
				t.Fatalf("read, but not placed: %v", err)
			}
		}
		if _, err := c.Truth(); err != nil {
			t.Fatalf("read, but without truth: %v", err)
		}
	})
}

func volumeOf(c Case) int {
	checked, err := c.Resolve()
	if err != nil {
		return 0
	}
	n := 0
	for _, a := range checked.Args {
		n += bounded(bounded(a.Batch, a.Rows), a.Cols)
	}
	return n
}
