// The lives that `make test` leaves out.
import './node-crash.test.ts';
