// The cases of the table that `make test` leaves out.
import './decide-laws.test.ts';
