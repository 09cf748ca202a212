package cases

import (
	"io/fs"
	"path/filepath"
)

// FindDirs returns every folder at or below dir that holds a case.json, in order.
func FindDirs(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == caseFile {
			found = append(found, filepath.Dir(path))
		}
		return err
	})
	return found, err
}

const caseFile = "case.json"

func ReadDir(dir string) (Case, error) { return Case{}, nil }
