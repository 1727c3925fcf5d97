// A text.

// AA1: one
// expected-error

// -----
// AA3: one
// expected-error
// -----
// expected-error



// -----
// AA1: nothing
