//go:build !linux && !darwin

package gguf

import "os"

// mapFile maps no files here: they are read.
func mapFile(*os.File, int64) (source, bool) { return nil, false }
