// The cases of the table that `make test` leaves out.
import './node-laws.test.ts';
