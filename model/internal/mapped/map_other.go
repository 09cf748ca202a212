//go:build !linux && !darwin

package mapped

import "os"

// mapFile maps no files here: they are read.
func mapFile(*os.File, int64) (source, bool) { return nil, false }
