// The cases of the table that `make test` leaves out.
import './route-laws.test.ts';
