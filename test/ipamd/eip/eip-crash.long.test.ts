// The cases of the table that `make test` leaves out.
import './eip-crash.test.ts';
