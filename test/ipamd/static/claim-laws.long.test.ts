// The cases of the table that `make test` leaves out.
import './claim-laws.test.ts';
