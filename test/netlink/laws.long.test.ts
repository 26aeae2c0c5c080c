// The cases of the table that `make test` leaves out.
import './laws.test.ts';
