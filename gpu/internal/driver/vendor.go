package driver

import "fmt"

// VendorName names a PCI vendor, or a maker of software implementations by its Khronos
// number; others are their number.
func VendorName(id uint32) string {
	switch id {
	case 0x1002:
		return "AMD"
	case 0x1010:
		return "Imagination"
	case 0x106b:
		return "Apple"
	case 0x10de:
		return "NVIDIA"
	case 0x13b5:
		return "Arm"
	case 0x1414:
		return "Microsoft"
	case 0x14e4:
		return "Broadcom"
	case 0x1ae0:
		return "Google"
	case 0x5143:
		return "Qualcomm"
	case 0x8086:
		return "Intel"
	case 0x10005:
		return "Mesa"
	}
	return fmt.Sprintf("%#x", id)
}
