// The cases of the table that `make test` leaves out.
import './exclusive-laws.test.ts';
