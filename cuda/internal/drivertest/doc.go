// Package drivertest has a [driver.Driver] that needs no GPU: device memory is memory of
// the host, and kernels are run by a function of the test. It is stricter than a real
// driver where that finds mistakes: memory holds NaNs before it is written and has pages
// around it that nobody may touch, copies are checked against what is live, the nodes of
// a graph run in a new order each time that its edges allow, calls without a current
// context fail, and what is not given back is named.
package drivertest
