package wav

import (
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

// foreignMagic lists how files begin that are taken for WAVE files.
var foreignMagic = []struct {
	at          int
	magic, name string
}{
	{0, "fLaC", "FLAC"},
	{0, "OggS", "Ogg"},
	{0, "ID3", "MP3 (ID3 tag)"},
	{0, "FORM", "AIFF"},
	{0, ".snd", "AU"},
	{0, "riff", "Sony Wave64"},
	{0, "caff", "Core Audio"},
	{0, "wvpk", "WavPack"},
	{0, "MAC ", "Monkey's Audio"},
	{0, "#!AMR", "AMR"},
	{0, "#!SILK", "SILK"},
	{0, "NIST_1A", "NIST SPHERE"},
	{0, "\x1A\x45\xDF\xA3", "Matroska or WebM"},
	{0, "\x30\x26\xB2\x75", "Windows Media"},
	{0, "\x1F\x8B", "gzip"},
	{0, "PK\x03\x04", "zip"},
	{4, "ftyp", "MP4 or M4A"},
}

// foreign is the error for an input that begins with b, which is no RIFF header.
func foreign(b []byte) error {
	name := ""
	for _, m := range foreignMagic {
		if len(b) > m.at && strings.HasPrefix(string(b[m.at:]), m.magic) {
			name = m.name
			break
		}
	}
	if name == "" && len(b) >= 2 && b[0] == 0xFF && b[1]&0xE0 == 0xE0 {
		// The frame sync of MPEG audio, then version and layer. Layer 1 is left out: it
		// does not occur, and raw samples may well begin like that.
		switch {
		case b[1]&0xF6 == 0xF0:
			name = "AAC (ADTS)"
		case b[1]&0x18 == 0x08:
		case b[1]&0x06 == 0x02:
			name = "MP3"
		case b[1]&0x06 == 0x04:
			name = "MPEG layer 2"
		}
	}
	if name != "" {
		return fmt.Errorf("no WAVE file: looks like %s: %w", name, pass.ErrUnsupported)
	}
	return fmt.Errorf("no WAVE file: begins with %q, perhaps raw samples without a header: %w", b[:min(4, len(b))], pass.ErrInvalid)
}
