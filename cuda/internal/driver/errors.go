package driver

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// An Error is what an entry point returned instead of success.
type Error struct {
	Code int    // a CUresult
	Name string // of the code: CUDA_ERROR_OUT_OF_MEMORY
	Text string // what the driver says of it
	Call string // the entry point
	Log  string // of the compiler of PTX, where there is one
}

// Codes that the backend tells apart.
const (
	InvalidValue          = 1
	OutOfMemory           = 2
	NotInitialized        = 3
	Deinitialized         = 4
	StubLibrary           = 34
	NewerDriverNeeded     = 36
	DeviceUnavailable     = 46
	NoDevice              = 100
	InvalidDevice         = 101
	InvalidImage          = 200
	InvalidContext        = 201
	NoBinaryForGPU        = 209
	Uncorrectable         = 214 // of the memory's error correction
	InvalidPTX            = 218
	LinkUncorrectable     = 220
	CompilerNotFound      = 221
	UnsupportedPTXVersion = 222
	CompilationDisabled   = 223
	Contained             = 226
	OperatingSystem       = 304
	InvalidHandle         = 400
	NotFound              = 500
	NotReady              = 600
	IllegalAddress        = 700
	LaunchOutOfResources  = 701
	LaunchTimeout         = 702
	ContextDestroyed      = 709
	Assert                = 710
	HardwareStack         = 714
	IllegalInstruction    = 715
	MisalignedAddress     = 716
	InvalidAddressSpace   = 717
	InvalidPC             = 718
	LaunchFailed          = 719
	CooperativeTooLarge   = 720
	TensorMemoryLeak      = 721
	NotSupported          = 801
	SystemNotReady        = 802
	DriverMismatch        = 803
	CompatNotSupported    = 804
	ServerFailure         = 806 // of the multi-process service
	ClientTerminated      = 810
	Unknown               = 999
)

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("driver: %s: %s (%s, %d)", e.Call, e.Text, e.Name, e.Code)
	if e.Log != "" {
		s += ": " + e.Log
	}
	return s
}

// Fatal reports whether the context is lost: every later call in it fails with the same
// code, and its memory cannot be trusted.
func (e *Error) Fatal() bool {
	switch e.Code {
	case Deinitialized, Uncorrectable, LinkUncorrectable, Contained, IllegalAddress, LaunchTimeout, ContextDestroyed, Assert,
		HardwareStack, IllegalInstruction, MisalignedAddress, InvalidAddressSpace, InvalidPC, LaunchFailed, TensorMemoryLeak,
		ServerFailure, ClientTerminated, Unknown:
		return true
	}
	return false
}

// Is makes errors.Is find the sentinel of package pass that the code stands for.
func (e *Error) Is(target error) bool {
	switch target {
	case pass.ErrOutOfMemory:
		return e.Code == OutOfMemory
	case pass.ErrDeviceLost:
		return e.Fatal()
	case pass.ErrNoDevice:
		switch e.Code {
		case StubLibrary, DeviceUnavailable, NoDevice, InvalidDevice, OperatingSystem, SystemNotReady, DriverMismatch, CompatNotSupported:
			return true
		}
	case pass.ErrUnsupported:
		return e.Unloadable() || e.Code == NotSupported || e.Code == NewerDriverNeeded
	}
	return false
}

// Unloadable reports whether an image cannot be loaded on this device by this driver,
// though another might be.
func (e *Error) Unloadable() bool {
	switch e.Code {
	case InvalidImage, NoBinaryForGPU, InvalidPTX, CompilerNotFound, UnsupportedPTXVersion, CompilationDisabled:
		return true
	}
	return false
}
