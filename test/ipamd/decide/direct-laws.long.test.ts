// The cases of the table that `make test` leaves out.
import './direct-laws.test.ts';
