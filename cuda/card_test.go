package cuda

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// card is the driver of a GPU with images of the test's.
type card struct {
	driver.Driver
	archive *kernels.Archive
}

func (c card) Archive() *kernels.Archive { return c.archive }

// ofImage is an archive in which the family of Fill has one image for a tier.
func ofImage(t *testing.T, tier string, image []byte) *kernels.Archive {
	t.Helper()
	sum := sha256.Sum256(image)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(image)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	a, err := kernels.OpenArchive(fstest.MapFS{
		"images/manifest.json":        {Data: fmt.Appendf(nil, `{"families":[{"name":"move","images":{%q:{"digest":%q}}}]}`, tier, hex.EncodeToString(sum[:]))},
		"images/move." + tier + ".gz": {Data: packed.Bytes()},
	})
	require.NoError(t, err)
	return a
}

// Images that are damaged, for another architecture, or of a later language than the driver
// knows are refused by the card's own driver, and the process goes on.
func TestImagesThatTheCardRefuses(t *testing.T) {
	if !onDevice() {
		t.Skip("asks the driver of a GPU: TANDEM_DEVICES=cuda")
	}
	const variable = "TANDEM_CUDA_DAMAGE"
	if os.Getenv(variable) == "" { // should the driver trip over one, this process does not
		again(t, variable+"=1")
		return
	}
	embedded, err := kernels.Embedded()
	require.NoError(t, err)
	own, err := kernels.TierNamed("sm_90a")
	require.NoError(t, err)
	good, err := embedded.Image("move", own)
	require.NoError(t, err)
	headless, hollow := bytes.Clone(good), bytes.Clone(good) // as long as they should be: the driver is not told how long
	clear(headless[:64])
	clear(hollow[len(hollow)/3:])
	later := []byte(".version 99.9\n.target sm_75\n.address_size 64\n")
	for name, c := range map[string]struct {
		tier  string
		image []byte
		fine  bool
	}{
		"as it is":            {"sm_90a", good, true},
		"zeros in the end":    {"sm_90a", hollow, false},
		"without its head":    {"sm_90a", headless, false},
		"text":                {"sm_90a", []byte(strings.Repeat("not a cubin ", 100) + "\x00"), false},
		"of a later language": {"ptx_75", later, false},
		"no language":         {"ptx_75", []byte("mov.u32 everything, nothing;"), false},
	} {
		cfg, err := Config{Tier: c.tier}.resolve()
		require.NoError(t, err)
		drv, err := driver.Open("")
		require.NoError(t, err)
		dev, err := open(t.Context(), card{drv, ofImage(t, c.tier, c.image)}, cfg)
		require.NoError(t, err, name)
		b := &bench{dev: dev}
		b.ses, err = dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err, name)
		for range 2 {
			_, err = b.record(t, 8)
			if c.fine {
				require.NoError(t, err, name)
				continue
			}
			require.ErrorIs(t, err, pass.ErrUnsupported, name)
			require.NotErrorIs(t, err, pass.ErrDeviceLost, name)
			t.Logf("%s: %v", name, err)
		}
		x, err := b.ses.Alloc(pass.F32, 4)
		require.NoError(t, err, name)
		require.NoError(t, b.ses.Write(t.Context(), x.View(), make([]float32, 4)), "%s: the device works on", name)
		require.NoError(t, dev.Close(), name)
	}
}

// A kernel that reaches beyond all memory loses its device, and no other.
func TestFaultOfTheCard(t *testing.T) {
	if !onDevice() {
		t.Skip("needs a GPU: TANDEM_DEVICES=cuda")
	}
	const variable = "TANDEM_CUDA_FAULT"
	if os.Getenv(variable) == "" { // a process of its own, since some drivers give up on one that faulted
		again(t, variable+"=1")
		return
	}
	dev, err := Open(t.Context(), Config{})
	require.NoError(t, err)
	hw := dev.(opened).hw
	err = hw.immediately(t.Context(), func(c *compiler) error {
		k := c.call("move_fill")
		args := kernels.Fill{Y: kernels.Words{P: 0x40, Row: 4, Batch: 4}, Value: 1}
		var g grid
		args.Units, args.Cols, args.Quads, args.Rows, g = k.units(field{1, 1, 4})
		return run(k, args, g, 0, pass.Cost{})
	})
	require.ErrorIs(t, err, pass.ErrDeviceLost)
	_, err = dev.NewSession(pass.SessionConfig{})
	require.ErrorIs(t, err, pass.ErrDeviceLost)
	require.NoError(t, dev.Close())
	dev, err = Open(t.Context(), Config{})
	if err != nil {
		require.True(t, errors.Is(err, pass.ErrNoDevice) || errors.Is(err, pass.ErrDeviceLost), err)
		t.Logf("the driver opens no further device: %v", err)
		return
	}
	require.NoError(t, multiply(t.Context(), dev))
	require.NoError(t, dev.Close())
}

// A GPU that is hidden, or that there is none of, is no device, with the reason; and no
// memory is that of ten terabytes.
func TestWhatTheCardDoesNotHave(t *testing.T) {
	if !onDevice() {
		t.Skip("needs a GPU: TANDEM_DEVICES=cuda")
	}
	if visible, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok && visible == "-1" {
		for range 2 {
			_, err := Open(t.Context(), Config{})
			require.ErrorIs(t, err, pass.ErrNoDevice)
			_, err = Devices(t.Context(), Config{})
			require.ErrorIs(t, err, pass.ErrNoDevice)
			t.Log(err)
		}
		return
	}
	again(t, "CUDA_VISIBLE_DEVICES=-1")
	_, err := Open(t.Context(), Config{Device: "99"})
	require.ErrorIs(t, err, pass.ErrNoDevice)
	dev, err := Open(t.Context(), Config{})
	require.NoError(t, err)
	defer dev.Close()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	const terabytes = 10 << 40
	_, err = ses.Alloc(pass.F32, terabytes/4)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	_, err = (&bench{ses: ses}).record(t, terabytes/4)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	require.NoError(t, multiply(t.Context(), dev))
}

// again runs a test in a process of its own, with more environment.
func again(t *testing.T, variables ...string) {
	t.Helper()
	other := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	other.Env = append(os.Environ(), variables...)
	out, err := other.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}
