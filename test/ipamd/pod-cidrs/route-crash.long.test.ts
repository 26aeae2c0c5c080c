// The lives that `make test` leaves out.
import './route-crash.test.ts';
