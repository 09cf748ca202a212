package dawn

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tandem-gpu/tandem/pass"
)

// Version names the library that "make dawn" puts into the cache folder.
const Version = "rillfacet-0.1.3"

// LibraryName is what the library's file is called on this system.
func LibraryName() string {
	switch runtime.GOOS {
	case "windows":
		return "webgpu_dawn.dll"
	case "darwin":
		return "libwebgpu_dawn.dylib"
	}
	return "libwebgpu_dawn.so"
}

// CachedLibrary is where "make dawn" puts the library.
func CachedLibrary() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("dawn: %w", err)
	}
	return filepath.Join(dir, "tandem", "dawn", Version, LibraryName()), nil
}

// Find returns the absolute path of the library to load: the path given, or the one in
// the cache folder. A path that is given is never replaced by another; a bare name is
// one in the working directory. The error wraps pass.ErrNoDevice and says what was
// looked for.
func Find(given string) (string, error) {
	path, from := given, "given"
	if path == "" {
		cached, err := CachedLibrary()
		if err != nil {
			return "", fmt.Errorf("%w: %w", err, pass.ErrNoDevice)
		}
		path, from = cached, "the cache folder's; set "+EnvLibrary+" for another"
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("dawn: library %s: %w: %w", path, err, pass.ErrNoDevice)
	}
	info, err := os.Stat(abs)
	switch {
	case err != nil:
		return "", fmt.Errorf("dawn: library (%s): %w: %w", from, err, pass.ErrNoDevice)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("dawn: library (%s): %s is no file: %w", from, abs, pass.ErrNoDevice)
	}
	return abs, nil
}
