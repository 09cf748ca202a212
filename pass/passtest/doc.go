// Package passtest is the contract that every backend fulfils, as a test: one suite
// for all of them. A backend's own test is
//
//	func TestConformance(t *testing.T) {
//		passtest.Run(t, func(t testing.TB) pass.Device {
//			dev, err := cpu.Open(cpu.Config{})
//			require.NoError(t, err)
//			return dev
//		})
//	}
//
// The suite runs the cases of package cases in every layout, and everything that a
// device, its sessions, recordings and runs promise. Its parts are sub-tests, so that
// -run finds them: "TestConformance/cases/gemm", "TestConformance/cancel".
//
// Environment: TANDEM_FULL=1 runs the large set too; TANDEM_CASES=DIR also runs
// every case folder below DIR, see cases/FORMAT.md; TANDEM_COVERAGE=FILE (an absolute
// path) counts there which ops ran and passed on which device, see [WriteCoverage];
// TANDEM_FUZZ_SECONDS says how long random recordings are made, see [Fuzz].
package passtest
