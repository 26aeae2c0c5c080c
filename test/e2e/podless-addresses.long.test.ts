// The cases of the table that `make test` leaves out.
import './podless-addresses.test.ts';
